// Package redisson provides an exclusive lock that shares its names with locks of Redisson, the
// Redis client for Java: processes in Go and in Java exclude each other, and wake each other.
//
//	strategy, err := redisson.New(drv, redisson.Config{})
//	...
//	l, err := holdfast.Wrap(strategy, holdfast.Config{}) // waits and renews
//
// It is for a name that a program in Java locks too. Otherwise package single is better: a release
// there wakes one waiter and not all, the order of waiters can be strict, and fence counters
// expire.
//
// # What is shared
//
// The keys and channels are those of Redisson 4.7, for a lock of the name n:
//
//	n                           a hash; its only field is the holder, <id>:<thread>, and the value
//	                            of the field is how often the holder has acquired the lock
//	redisson_lock_token:{n}     the last fencing token
//	redisson_lock__channel:{n}  the channel of releases; the message is 0
//
// The braces are left out if n has a "{". A holder in Go has a token of 128 random bits as its ID,
// and 1 as its thread and its value. Its owner and its note follow in the field, if it has them;
// Redisson does not look at them.
//
//   - RLock (getLock) and holds without a fencing token share a name. So do RFencedLock
//     (getFencedLock) and holds with one: the tokens of both increase in turn.
//   - A release in Go wakes waiters in Java, and an unlock or forceUnlock in Java wakes waiters in
//     Go. In a cluster both publish by SPUBLISH if the server knows it; a Redisson with
//     shardedSubscriptionMode OFF does not hear that.
//   - A lease is the TTL of the key for both. The watchdog of Redisson renews locks in Java, and
//     strategies/watchdog renews those in Go.
//   - A late unlock, renewal or release changes nothing: Redisson throws
//     IllegalMonitorStateException, and Release returns locker.ErrLost.
//   - RSpinLock (getSpinLock) and holds in Go exclude each other. Neither wakes the other: they
//     poll.
//   - RFairLock (getFairLock) and holds in Go exclude each other, but do not wait together well. A
//     waiter in Go has no place in the queue of RFairLock, may pass those in it, and polls: an
//     unlock publishes only to the first in the queue. A release in Go wakes none of them: each
//     sleeps until the lease that it saw would have ended.
//
// With a NameMapper in Java, Config.Prefix must make the same key. A codec has no effect on locks.
//
// # What is guaranteed
//
// Between holds in Go all that package single guarantees, but for its queue of waiters: lost
// replies, clean-up, Release, Resume, MinHold, Deadline and MinReplicas are as there. Beside
// holders in Java:
//
//   - One holder at a time. A refusal says that the holder is Foreign, and how long its lease
//     lasts; it does not know its owner. Inspect returns how often that holder has acquired the
//     lock.
//   - Each hold has a field of its own, and is compared whole. A resent command of Go changes
//     nothing.
//   - What is no lock of this kind is an error and is left alone: a hash with other fields, such as
//     an RReadWriteLock or a hash of package reentrant. An RMap is taken for a lock if its only entry
//     has the form of one, such as "user:42" with a number.
//   - locker.Break ends the hold of a thread in Java, however often it has acquired the lock. The
//     thread learns of it at its unlock.
//
// # What is not guaranteed
//
// The lock is not reentrant in Go, whoever the owner is. It has no shared mode, and the order of
// waiters is not kept between processes: a release wakes all of them.
//
// RReadWriteLock is not shared. If a reader of Redisson joins one in Go with a longer lease, its
// watchdog sets the TTL of the key to 30 s (lockWatchdogTimeout). If it then dies, the key ends,
// and a writer enters before the Deadline of the reader in Go. No script of ours could prevent
// that. An acquire in Go at a name with an RReadWriteLock is an error.
//
// Defects of Redisson stay in a mixed fleet:
//
//   - RLock and RReadWriteLock of one name do not exclude each other: the write lock, and the first
//     read lock, enter beside an RLock, and so beside a hold in Go. They set the TTL of the key to
//     their own lease: the lease of the hold in Go may end before its Deadline. Each leaves the
//     other's fields alone at its end.
//   - An acquire in Java whose reply is lost throws, though the thread holds the lock until the
//     lease ends. If the program acquires it again in the same thread, it counts twice, and one
//     unlock does not free it.
//   - RedissonMultiLock (getMultiLock) with a lease sets the TTL of all its keys once it has
//     acquired the last, without looking at the holders. If it had lost one to a hold in Go
//     meanwhile, the lease of this hold changes, and may end before its Deadline.
//   - forceUnlock ends a hold in Go. Its Lock learns of it at its next renewal.
//   - redisson_lock_token:{n} has no TTL and stays for each name once locked with a token. If it is
//     lost, as by FLUSHALL, the next RFencedLock begins at 1, below the tokens in use. The next
//     fenced hold in Go begins at the server's time in microseconds, above all others.
//
// Names with a "{" and no "}" are refused, since Redisson's own keys of such a name have other
// slots in a cluster; so are names that begin with redisson_lock_token:. A TTL under 3 ms is
// refused. The lock neither waits nor renews: put middleware/retry and strategies/watchdog around
// it. A failover to a replica without the key lets a second holder in, unless Config.MinReplicas
// guards against it (see package single); Redisson has options of its own for that.
//
// Servers: Redis 6.2 and Valkey 7.2 or later. An ACL must allow, beside what package single needs
// without its queue, the commands hdel, hexists, hkeys, hlen, hset, hvals and spublish, and the
// keys and the channel above.
package redisson
