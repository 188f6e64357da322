// Package rwhash provides a read/write lock: for many readers or one writer.
//
//	strategy, err := rwhash.New(drv, rwhash.Config{})
//	...
//	l, err := holdfast.Wrap(strategy, holdfast.Config{}) // waits and renews
//	...
//	lock, err := l.Acquire(ctx, locker.Request{Name: "catalog", Mode: locker.Shared})
//
// A name is a hash, with a field for every hold. Its key and the fence counter share a slot, so it
// works in a Cluster.
//
// Request.Mode says how to hold: locker.Shared with other readers, or locker.Exclusive (the
// default) alone. The lock is not reentrant, whoever the owner is: a reader that acquires again has
// two holds. A reader that asks for the exclusive mode beside its own shared hold waits for itself,
// or fails with locker.ErrNested under the ctx of that hold. Use Lock.Upgrade there.
//
// # What is guaranteed
//
//   - Every acquire is a hold of its own, named by a token of 128 random bits, with a lease and a
//     Deadline of its own by the server's clock. A dead reader keeps a writer out until its own
//     lease ends and no longer, however often others renew. A release ends its own hold and no
//     other.
//   - Lock.Downgrade makes a writer a reader at once, and wakes the waiting readers; no other
//     writer gets in between. Lock.Upgrade makes the sole reader the writer. If there are other
//     readers it is refused at once with an error that matches ErrNotAcquired and names one, and
//     the hold stays a reader's: two upgrades never wait for each other. It goes before waiting
//     writers. Both leave the lease as it is, and change nothing if the lock has that mode already.
//   - A resent conversion is done once, and one arriving after a later one of the same Lock changes
//     nothing. One of unknown outcome (ErrUnknownOutcome) leaves Lock.Mode at Shared, whatever the
//     server did: rely on reading alone, and convert again, to either mode, or release.
//   - Fencing tokens are minted for writers: at an acquire, at the upgrade of a fenced hold, and at
//     a Resume. A fenced reader has the token of the last fenced writer, also after Resume. If
//     there was none, all readers share one, and the next writer's exceeds it.
//   - A handle is valid in the mode in which it was made: Resume with one from before a conversion
//     is ErrNotHeld.
//   - Lost replies, clean-up, Release, Resume and Deadline are as in package single, for each hold.
//
// # The order of readers and writers
//
// Waiting is that of middleware/retry: the waiters of all processes are in a queue at the server.
//
// A waiting writer keeps new readers out, for Config.WriterTurn at a time. Then new readers get in
// for as long, even if the writer still waits, and so on. After a writer, by release, downgrade or
// expiry, the readers refused meanwhile come first. They have 500 ms; the first one to enter ends
// this 10 ms later. If a reader has waited for WriterTurn, they all have 500 ms, so distant ones
// get in too. If no reader waits, the lock is for the first waiter. The longest waiting writer is
// next, and nobody passes it while it has time to try. So waits are bounded for readers and
// writers, as long as readers hold for less than WriterTurn.
//
// A waiter that gives up leaves the queue at once, a dead one a few seconds later (see
// [docs/contracts.md], contract 12). Request.NoWait keeps nobody out, nor does an acquire before
// its first refusal. The refusal of a lock kept for waiters names no holder. Renewals, releases and
// conversions are never delayed by any of this. Over a quorum the order is not strict: a waiting
// writer keeps new readers out for a second after each attempt, also if it gives up meanwhile.
//
// An acquire in either mode, a renewal, a release and a refusal cost the server O(1). They read up
// to 64 fields when the hold with the latest expiry is gone, and from time to time to remove
// expired holds. Expired holds, however many, cost nothing more. Inspect reads all fields. So does,
// once per up to 64 holds, an operation that finds no live hold among the latest ones while earlier
// ones may be live.
//
// # What is not guaranteed
//
// There is no order among readers. An acquire without middleware/retry has no place. A TTL under 3
// ms is refused. The lock neither waits nor renews: put middleware/retry and strategies/watchdog
// around it. A failover to a replica without the last writes may let a writer in beside others,
// unless Config.MinReplicas guards against it (see package single). An upgrade that falls short
// there is one of unknown outcome; a downgrade, like a release, needs no acknowledgement. Other
// libraries that lock with SET NX find a key of another type, and the reverse.
//
// Leases count in whole milliseconds of the server's clock. One may end up to 1 ms before its TTL;
// this uses up some of a Deadline's allowance for drift.
//
// Servers: Redis 6.2 (HRANDFIELD) and Valkey 7.2 or later. An ACL must allow the same as for
// package reentrant.
//
// [docs/contracts.md]: https://github.com/holdfast-go/holdfast/blob/main/docs/contracts.md
package rwhash
