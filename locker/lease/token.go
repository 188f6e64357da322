package lease

import (
	"crypto/rand"
	"encoding/base64"
)

// TokenLen is the length of what NewToken returns.
const TokenLen = 22

// NewToken returns 128 random bits from crypto/rand as 22 characters of URL-safe base64.
func NewToken() string {
	var raw [16]byte
	_, _ = rand.Read(raw[:]) // never fails: the runtime aborts where the system has no randomness
	var text [TokenLen]byte
	base64.RawURLEncoding.Encode(text[:], raw[:])
	return string(text[:])
}
