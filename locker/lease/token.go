package lease

import (
	"crypto/rand"
	"encoding/base64"
	"strings"
)

// TokenLen is the length of a token of NewToken.
const TokenLen = 22

// NewToken returns 128 random bits from crypto/rand as 22 characters of URL-safe base64. The last
// one is P, f, v or _: [IsToken] tells tokens from the values of other libraries by it.
func NewToken() string {
	var raw [16]byte
	_, _ = rand.Read(raw[:]) // never fails: the runtime aborts on a system without randomness
	var text [TokenLen]byte
	base64.RawURLEncoding.Encode(text[:], raw[:])
	text[TokenLen-1] = lastOf(text[TokenLen-1])
	return string(text[:])
}

// lastOf returns the last character of a token for c, that of the base64 of 16 bytes: two bits.
func lastOf(c byte) byte {
	switch c {
	case 'A':
		return 'P'
	case 'Q':
		return 'f'
	case 'g':
		return 'v'
	default: // 'w'
		return '_'
	}
}

// IsToken reports whether text has the form of a token of NewToken.
func IsToken(text string) bool {
	if len(text) != TokenLen || !strings.ContainsRune("Pfv_", rune(text[TokenLen-1])) {
		return false
	}
	for i := range len(text) {
		c := text[i]
		if (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' && c != '_' {
			return false
		}
	}
	return true
}
