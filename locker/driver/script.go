package driver

import (
	"crypto/sha1" //nolint:gosec // Redis names scripts by SHA-1; nothing is secured by it.
	"encoding/hex"
)

// Script is a Lua script and its digest, by which a server can run a cached script. It is
// immutable. Make each script once, with [NewScript]: adapters remember scripts by pointer.
type Script struct {
	source, digest string
}

// NewScript returns the script source, ready for EVALSHA
// (https://redis.io/docs/latest/commands/evalsha/).
func NewScript(source string) *Script {
	sum := sha1.Sum([]byte(source)) //nolint:gosec // see the import
	return &Script{source: source, digest: hex.EncodeToString(sum[:])}
}

// Source returns the Lua text.
func (s *Script) Source() string { return s.source }

// Digest returns the SHA-1 of Source in lower-case hexadecimal.
func (s *Script) Digest() string { return s.digest }
