package security_test

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
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
}
