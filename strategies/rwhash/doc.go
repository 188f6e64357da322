// Package rwhash is a lock for many readers or one writer: a hash per name, with a field for every hold. Its one key and the
// fence counter share a slot, so that it works in a Cluster.
//
// Request.Mode says how to hold: locker.Shared with other readers, or locker.Exclusive (the default) alone. It is not
// reentrant, neither for readers nor for writers, whoever the owner is: a reader that acquires again has two holds, and one
// that asks for the exclusive mode beside its own shared hold waits for itself. Use Lock.Upgrade there.
//
// # What is guaranteed
//
//   - Every acquire is a hold of its own, named by a token of 128 random bits, with a lease and a Deadline of its own by the
//     server's clock. A reader that died keeps a writer out until its own lease ends and no longer, however often others
//     renew; a release ends its own hold and no other.
//   - Lock.Downgrade makes a reader of a writer at once, and wakes the readers who wait; no other writer gets in between.
//     Lock.Upgrade makes the writer of the sole reader. Where others read it is refused at once with an error that matches
//     ErrNotAcquired and says who, and the hold goes on as a reader's: two who upgrade never wait for each other. It passes
//     by the writers who wait. Both leave the lease as it is, and change nothing where the lock is held so already.
//   - A conversion that is sent again is done once, and one that arrives behind a later one of the same Lock changes nothing.
//     One of unknown outcome (ErrUnknownOutcome) leaves Lock.Mode at Shared, whatever the server did: count on reading alone,
//     and convert again, to either mode, or release.
//   - Fencing tokens are minted for writers: at an acquire, at the upgrade of a fenced hold, at a Resume. A fenced reader has
//     the token of the last writer that had one, also after Resume; where there was none, one that all readers share and the
//     next writer's exceeds.
//   - A handle is good for the mode that it was made in: Resume by one from before a conversion is ErrNotHeld.
//   - What is said in package single of lost answers, clean-up, Release, Resume and Deadline holds here too, for each hold.
//
// # Who comes when
//
// A writer that was refused by readers keeps new readers out, for Config.WriterTurn at a time; then new readers get in for
// as long, though it goes on waiting, and so on. After a writer, by release, downgrade or the end of its lease, the readers
// come first who were refused meanwhile: all who try within 10 ms of the first of them, and once in a WriterTurn for 500 ms,
// so that those far away get in too, as long as somebody waits whenever a hold ends: a lock that falls idle forgets, and whoever
// comes first has it. Of writers who wait by middleware/retry, in any number of processes, the one that has
// waited longest is next. So waits are bounded for readers and writers, as long as readers hold for less than WriterTurn.
//
// An attempt that is refused leaves an intent for that, which lives for a second, or until ctx's deadline or MaxWait where
// that is earlier; its refusal says to try again after 400 ms at the latest (ContentionError.RetryAfter), and middleware/retry
// does. Who stops waiting is out of the way then; until then a lock may be refused that nobody holds, and its key be there.
// Request.NoWait leaves nothing, nor does the first attempt of a writer that another writer refuses: both are told when the
// lease ends.
// Renewals, releases and conversions are never kept from a holder by any of this.
//
// An acquire in either mode, a renewal, a release and a refusal cost the server O(1). They read up
// to 64 fields when the hold with the latest expiry is gone, and from time to time to remove
// expired holds. Expired holds, however many, cost nothing more. Inspect reads all fields. So does,
// once per up to 64 holds, an operation that finds no live hold among the latest ones while earlier
// ones may be live.
//
// # What is not
//
// There is no order among readers, nor among writers that retry without middleware/retry. A TTL under 3 ms is refused. It
// neither waits nor renews: put middleware/retry and strategies/watchdog around it. A failover to a replica that did not get
// the last writes yet may let a writer in beside others, unless Config.MinReplicas guards against it (see package single). An
// upgrade that falls short there is one of unknown outcome; a downgrade, like a release, needs no acknowledgement. Other
// libraries that lock by SET NX find a key of another type, and the other way round.
//
// Leases count in whole milliseconds of the server's clock, and one may end up to 1 ms before its TTL: of the drift for which a
// Deadline allows, so much is used up.
//
// Servers: Redis 6.2 (HRANDFIELD) and Valkey 7.2 or later. An ACL must allow what package reentrant needs.
package rwhash
