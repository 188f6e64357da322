package security_test

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/locker/lease"
)

// A token is 128 bits of crypto/rand. The four bits behind them mark it as ours.
func TestTokens(t *testing.T) { //nolint:paralleltest // it replaces the process's source of randomness
	source := rand.Reader
	defer func() { rand.Reader = source }()
	raw := []byte("sixteen bytes !!")
	rand.Reader = bytes.NewReader(raw)
	want := strings.TrimSuffix(base64.RawURLEncoding.EncodeToString(raw), "Q") + "f"
	if got := lease.NewToken(); got != want || !lease.IsToken(got) {
		t.Errorf("the token %q is not made of what crypto/rand gave, which would be %q", got, want)
	}
	rand.Reader = source

	var ones, zeros [16]byte
	seen := map[string]bool{}
	for range 1000 {
		text := lease.NewToken()
		bits, err := base64.RawURLEncoding.DecodeString(text)
		if err != nil || len(bits) != len(ones) || seen[text] || !lease.IsToken(text) {
			t.Fatalf("the token %q: %v; it was seen before: %v", text, err, seen[text])
		}
		seen[text] = true
		for i, b := range bits {
			ones[i] |= b
			zeros[i] |= ^b
		}
	}
	all := [16]byte(slices.Repeat([]byte{0xff}, 16))
	if ones != all || zeros != all {
		t.Errorf("bits that never change: %x %x", ones, zeros)
	}
}
