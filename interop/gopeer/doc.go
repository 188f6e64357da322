// Package gopeer is the peer in Go: Holdfast over each client, redsync, redislock and rueidislock.
// Package peer has the protocol.
package gopeer
