package rwhash

import (
	"time"

	"github.com/holdfast-go/holdfast/internal/argument"
)

// Config configures a Locker. The zero Config works.
type Config struct {
	// Prefix is put before every name to make the key; at most 1024 bytes. Default: none, the key
	// is the name.
	Prefix string
	// TTL is for a Request without a TTL: 3 ms to 24 days. Default: 30 s.
	TTL time.Duration
	// AttemptTimeout bounds each send of a command; at least 1 ms. Default: a third of the hold's
	// TTL, at most 3 s.
	AttemptTimeout time.Duration
	// ReleaseTimeout is the maximum time for which Release, and so locker.Do, waits for the answer.
	// After it the outcome is unknown, and the release continues in the background. If ctx has
	// ended, Release waits for one AttemptTimeout at most. At least 1 ms. Default: two
	// AttemptTimeouts.
	ReleaseTimeout time.Duration
	// MinReplicas is how many replicas must acknowledge an acquire, a resume, a renewal or an
	// upgrade before it counts. They are asked by WAIT, in the same round trip. See package single.
	// Default: 0, none. Over a driver without WAIT, acquires return errors.ErrUnsupported.
	MinReplicas int
	// ReplicaTimeout is how long the replicas have for it; at least 1 ms, and less than an attempt.
	// Default: half of the attempt's timeout.
	ReplicaTimeout time.Duration
	// WriterTurn is how long at a time waiting writers keep new readers out; then readers get in
	// for as long, even if writers wait. A reader that has waited for so long has a longer turn
	// after a writer. 10 ms to 1 h, in whole milliseconds. All Lockers of a name should have the
	// same. Default: 5 s.
	//
	// The longest hold of a reader should be shorter, by half a second or more: else a writer may
	// find readers at the end of each of its turns.
	WriterTurn time.Duration
}

const (
	defaultWriterTurn = 5 * time.Second
	minWriterTurn     = 10 * time.Millisecond
	maxWriterTurn     = time.Hour
)

// writerTurn returns WriterTurn or its default.
func (c Config) writerTurn() (time.Duration, error) {
	switch d := c.WriterTurn; {
	case d == 0:
		return defaultWriterTurn, nil
	case d < minWriterTurn || d > maxWriterTurn:
		return 0, argument.Invalid("rwhash.Config.WriterTurn", d.String(), "10ms to 1h, or 0 for 5s")
	default:
		return d, nil
	}
}
