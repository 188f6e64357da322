// Package semaphore grants up to a number of permits of a name at a time: a sorted set per name,
// with a member for every hold, ordered by when it ends.
//
// A [locker.Request] asks for Request.Permits permits, one by default. They are one hold, a Lock
// with a lease of its own, which ends for all of them together. Its mode is Exclusive: its permits
// are nobody else's. So Do, Try, Resume, the watchdog and all other middleware work as with a lock.
// Request.Mode Shared ends in errors.ErrUnsupported, and so does Request.Permits above 1 with any
// other strategy. The semaphore is not reentrant: an owner that acquires again gets more permits,
// or waits for itself.
//
// # What is guaranteed
//
//   - At most Config.Permits permits of a name are held at a time, by the server's clock. The
//     permits of a holder that died are free when its lease ends, without anybody's help: the next
//     script that looks removes the hold. The key expires with the hold that ends last.
//   - A request for more than Config.Permits is refused at once with an error that matches
//     ErrInvalid.
//   - A fenced hold has a fencing token that is higher than those of all holds acquired before.
//     Resume replaces it by a higher one. Holds are concurrent, so a store that only accepts the
//     highest token it has seen turns older live holders away. Compare tokens where at most one
//     holder writes, such as for each unit of work.
//   - What package single says of lost replies, clean-up, Release, Resume and Deadline holds here
//     too, for each hold. A resumed hold keeps its permits: another Request.Permits is ErrInvalid.
//
// # The order of waiters
//
// Waiters queue at the server, one for each process, as in package single with Config.Fair: the
// first one is the one that has waited longest. While it waits nobody else gets permits, whether a
// newcomer, one with NoWait, or another waiter, even if enough are free for these and not for it.
// So a large request is not starved by small ones: once it is first, it has its permits as soon as
// enough of the present holders release theirs or expire. Before that it waits for those that were
// ahead of it, each of which entered the queue earlier.
//
// A release wakes the first waiter. Its attempt, if it gets its permits and leaves some, wakes the
// next one, and so on, until no permits are left or too few for the waiter that is first by then. A
// first waiter that gives up or dies keeps the others out for two of their polls, about 4 s, or one
// where the server counts who listens; see "Waiters" in package single.
//
// Waiters of one process queue in it by middleware/retry. The next one tries as soon as the one
// before has its permits. So a process may have many holds of a name and one place in the queue;
// since places are ordered by how long their waiters have waited, it gets no more than its turn.
//
// # Changing the limit
//
// The limit is kept with the holds. An acquire by a Locker with another Config.Permits ends in a
// [LimitError], which says both limits, as long as anybody holds permits. Holds of either are
// renewed and released as ever. Once nobody holds permits, the limit is that of the next to
// acquire.
//
// To change the limit while it is in use, let new programs have the new Config.Permits and
// Config.Resize. The first acquire of one of them sets the limit, also if it is refused. A higher
// one counts at once. With a lower one present holders keep what they have, and nobody gets permits
// until fewer are held. Programs with the old limit then get a LimitError until they are replaced.
// Two limits with Resize in both would replace each other in turn; each acquire is granted by its
// own.
//
// # Cost
//
// An acquire, a renewal, a release and a refusal cost the server O(log n) of the number of holds,
// and as much for each expired hold that they remove. Inspect costs O(log n), and O(1) for each
// expired hold.
//
// # What is not guaranteed
//
// Semaphores are no nodes of a quorum: a majority of n permits on each node is more than n in all,
// and redlock.New refuses them. The Locker neither waits nor renews: put middleware/retry and
// strategies/watchdog around it. middleware/retry does not hand permits over (Config.HandOver). A
// failover to a replica that does not have the last writes yet may grant too many permits, unless
// Config.MinReplicas guards against it (see package single). Other libraries that lock with SET NX
// find a key of another type, and the reverse.
//
// Leases count in whole milliseconds of the server's clock. One may end up to 1 ms before its TTL;
// that uses up some of the drift for which a Deadline allows.
//
// Servers: Redis 6.2 and Valkey 7.2 or later. An ACL must allow, beside what package single needs,
// the commands exists, pexpireat, zcount and zrangebyscore.
package semaphore
