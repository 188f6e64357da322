package redisson

import "time"

// Config configures a Locker. The zero Config works.
type Config struct {
	// Prefix is put before every name to make the key; at most 1024 bytes. It is for a NameMapper of
	// Redisson. Default: none, the key is the name.
	Prefix string
	// TTL is for a Request without a TTL: 3 ms to 24 days. Default: 30 s.
	TTL time.Duration
	// AttemptTimeout bounds each send of a command; at least 1 ms. Default: a third of the lock's
	// TTL, at most 3 s.
	AttemptTimeout time.Duration
	// ReleaseTimeout is the maximum time for which Release, and so locker.Do, waits for the answer.
	// After it the outcome is unknown, and the release continues in the background. If ctx has
	// ended, Release waits for one AttemptTimeout at most. At least 1 ms. Default: two
	// AttemptTimeouts.
	ReleaseTimeout time.Duration
	// MinReplicas is how many replicas must acknowledge an acquire, a resume or a renewal before it
	// counts. They are asked by WAIT, in the same round trip. See package single. Default: 0, none.
	// Over a driver without WAIT, acquires return errors.ErrUnsupported.
	MinReplicas int
	// ReplicaTimeout is how long the replicas have for it; at least 1 ms, and less than an attempt.
	// Default: half of the attempt's timeout.
	ReplicaTimeout time.Duration
}
