// Package reentrant provides an exclusive lock that its owner can acquire again, from any process.
//
//	strategy, err := reentrant.New(drv, reentrant.Config{})
//	...
//	l, err := holdfast.Wrap(strategy, holdfast.Config{}) // waits and renews
//
// A name is a hash, with a field for every hold.
//
// The owner is Request.Owner, else the one in ctx, else a fresh random one. locker.Do and
// Lock.Context put it into the ctx for the lock's own name, so nested work can acquire the lock
// again; locker.WithOwner does so for all names. The owner that holds the lock acquires it again at
// once, from any goroutine or process. Others are refused, with the owner and the note of the
// holder. An owner is an identity, not a secret: refused callers see it.
//
// # What is guaranteed
//
//   - Every acquire is a hold of its own, named by a token of 128 random bits, with a lease and a
//     Deadline of its own. Nothing is counted, so a resent command changes nothing.
//   - The lock is free when its last live hold ends, by release or by the server's clock, in any
//     order. An expired hold is lost, even if other holds of its owner are live: Renew does not
//     bring it back, and Release returns ErrLost.
//   - All holds of an owner share one fencing token, until the lock is free again. It is minted
//     when the first acquire asks for one; every later fenced acquire gets the same. Resume of a
//     fenced hold mints a new one; the Locks of the other holds keep the older one.
//   - Lost replies, clean-up, Release, Resume and Deadline are as in package single, for each hold.
//
// To acquire again, to renew and to release cost the server O(1). So does a refusal, except the
// first one after the hold with the longest lease was released: it reads all holds. Expired holds
// without a release are removed a few at a time by later acquires.
//
// # What is not guaranteed
//
// The note is from the acquire of the free lock, or from a resume with one. A TTL under 3 ms is
// refused. There is no shared mode (errors.ErrUnsupported). The lock neither waits nor renews: put
// middleware/retry and strategies/watchdog around it. A failover to a replica without the key lets
// a second owner in, unless Config.MinReplicas guards against it (see package single). Other
// libraries that lock with SET NX find a key of another type, and the reverse.
//
// Leases count in whole milliseconds of the server's clock. One may end up to 1 ms before its TTL;
// this uses up some of a Deadline's allowance for drift.
//
// Waiters queue at the server, and Config.Fair makes their order strict, as in package single. An
// owner that holds the lock enters again even while others wait.
//
// Servers: Redis 6.2 (HRANDFIELD) and Valkey 7.2 or later. An ACL must allow, beside what package
// single needs, the commands exists, hdel, hget, hgetall, hlen, hmget, hrandfield, hset and
// pexpireat.
package reentrant
