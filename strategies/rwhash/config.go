package rwhash

import (
	"time"

	"github.com/holdfast-go/holdfast/locker/driver"
)

// Config configures a Locker. The zero Config works.
type Config struct {
	// Prefix stands before every name to make the key; at most 1024 bytes. Default: none, so that the key is the name.
	Prefix string
	// TTL is what a Request without a TTL gets: 3 ms to 24 days. Default: 30 s.
	TTL time.Duration
	// AttemptTimeout bounds each send of a command; at least 1 ms. Default: a third of the hold's TTL, at most 3 s.
	AttemptTimeout time.Duration
	// MinReplicas is how many replicas must acknowledge a grant before it counts, by WAIT in the same round trip: an acquire, a
	// resume, a renewal or an upgrade. See package single. Default: 0, none is asked.
	MinReplicas int
	// ReplicaTimeout is how long they have for it; at least 1 ms, less than an attempt. Default: half of the attempt's
	// timeout.
	ReplicaTimeout time.Duration
	// WriterTurn is for how long at a time waiting writers keep new readers out; then readers get in for as long, though
	// writers wait. It also bounds how long readers who waited come first after a writer. 10 ms to 1 h, in whole
	// milliseconds. All Lockers of a name should have the same. Default: 5 s.
	//
	// The longest hold of a reader should be shorter, by half a second or more: else a writer may find readers at the end of
	// each of its turns.
	WriterTurn time.Duration
}

const (
	defaultWriterTurn = 5 * time.Second
	minWriterTurn     = 10 * time.Millisecond
	maxWriterTurn     = time.Hour
)

// writerTurn is Config.WriterTurn with its default.
func (c Config) writerTurn() (time.Duration, error) {
	switch d := c.WriterTurn; {
	case d == 0:
		return defaultWriterTurn, nil
	case d < minWriterTurn || d > maxWriterTurn:
		return 0, driver.Invalid("rwhash.Config.WriterTurn", d.String(), "10ms to 1h, or 0 for 5s")
	default:
		return d, nil
	}
}
