package reentrant

import "time"

// Config configures a Locker. The zero Config works.
type Config struct {
	// Prefix stands before every name to make the key; at most 1024 bytes. Default: none, so that the key is the name.
	Prefix string
	// TTL is what a Request without a TTL gets: 3 ms to 24 days. Default: 30 s.
	TTL time.Duration
	// AttemptTimeout bounds each send of a command; at least 1 ms. Default: a third of the hold's TTL, at most 3 s.
	AttemptTimeout time.Duration
	// MinReplicas is how many replicas must acknowledge a grant before it counts, by WAIT in the same round trip: an acquire, a
	// resume or a renewal. See package single. Default: 0, none is asked.
	MinReplicas int
	// ReplicaTimeout is how long they have for it; at least 1 ms, less than an attempt. Default: half of the attempt's
	// timeout.
	ReplicaTimeout time.Duration
}
