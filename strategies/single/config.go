package single

import "time"

// Config configures a Locker. The zero Config works.
type Config struct {
	// Prefix is put before every name to make the key; at most 1024 bytes. Default: none, the key
	// is the name, for which other libraries contend.
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
	// counts. They are asked by WAIT, in the same round trip. See "Replicas". Default: 0, none.
	// Over a driver without WAIT, acquires return errors.ErrUnsupported.
	MinReplicas int
	// ReplicaTimeout is how long the replicas have for it; at least 1 ms, and less than an attempt.
	// Default: half of the attempt's timeout.
	ReplicaTimeout time.Duration
	// Fair makes the order of waiters strict: the lock goes to the one that has waited longest, in
	// any process, and to nobody else while one waits. See "Waiters" in package single. All Lockers
	// of a name should have the same. Default: newcomers may take a free lock.
	Fair bool
	// Keyspace is the prefix of the channels on which the server announces changes of keys:
	// "__keyspace@0__:" for database 0. Waiters listen there too, and so the release of another
	// library wakes them. It is for names that another library shares: each acquire, renewal and
	// release of a lock then wakes every process that waits for it. The server needs
	// notify-keyspace-events Kgxe
	// (https://redis.io/docs/latest/develop/pubsub/keyspace-notifications/), which costs it a message
	// whenever any key is deleted, expires or gets a TTL. It is not for a Cluster, whose nodes
	// announce their own keys only. Default: none, waiters poll for a lock of another library.
	Keyspace string
	// Signal makes a release also wake the waiters of one other library that do not poll:
	// SpringPubSub or PythonRedisLock. It costs each release three or four commands in its script. All
	// Lockers of a name should have the same. Neither the end of a lease, nor a release with a MinHold,
	// nor, with Fair, one that reserves the lock for a waiter, wakes them. Default: 0, none.
	Signal Signal
}
