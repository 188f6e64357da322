package driver

import (
	"crypto/sha1" //nolint:gosec // Redis names scripts by SHA-1; nothing is secured by it.
	"encoding/hex"
)

// Script is a Lua script and the digest by which the server knows it. Make it once with [NewScript]; it is immutable.
type Script struct {
	source, digest string
}

// NewScript prepares source for EVALSHA (https://redis.io/docs/latest/commands/evalsha/).
func NewScript(source string) *Script {
	sum := sha1.Sum([]byte(source)) //nolint:gosec // see the import
	return &Script{source: source, digest: hex.EncodeToString(sum[:])}
}

// Source is the Lua text.
func (s *Script) Source() string { return s.source }

// Digest is the SHA-1 of Source in lower-case hex.
func (s *Script) Digest() string { return s.digest }
