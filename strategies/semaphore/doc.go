// Package semaphore provides a semaphore: at most a given number of permits of a name are held at a
// time.
//
//	strategy, err := semaphore.New(drv, semaphore.Config{Permits: 10})
//	...
//	l, err := holdfast.Wrap(strategy, holdfast.Config{}) // waits and renews
//	...
//	lock, err := l.Acquire(ctx, locker.Request{Name: "gpu", Permits: 2})
//
// A name is a sorted set with a member for each hold, ordered by when its lease ends.
//
// A [locker.Request] asks for Request.Permits permits, one by default. They form one hold: a Lock
// with one lease, which ends for all of them together. No permit belongs to two holds, so the mode
// is Exclusive, and Do, Try, Resume, the watchdog and all other middleware work as with a lock.
// Request.Mode Shared returns errors.ErrUnsupported, and so does Request.Permits above 1 with any
// other strategy. The semaphore is not reentrant: an owner that acquires again needs more permits,
// and waits for itself if too few are free.
//
// # What is guaranteed
//
//   - At most Config.Permits permits of a name are held at a time, by the server's clock. A dead
//     holder's permits are free when its lease ends: the next script that needs permits removes the
//     expired hold. The key expires with the hold that ends last.
//   - A request for more than Config.Permits is refused at once with an error that matches
//     ErrInvalid.
//   - A fenced hold has a higher fencing token than all holds acquired before. Resume replaces it
//     by a higher one. Holds are concurrent, so a store that accepts only the highest token so far
//     refuses writes of older live holders. Compare tokens only where at most one holder writes,
//     such as for each unit of work.
//   - With Request.MinHold the permits of a hold stay taken, after its release, until MinHold has
//     passed since the acquire. Other holds and the free permits are not affected. Inspect counts
//     these permits, but no hold.
//   - Lost replies, clean-up, Release, Resume and Deadline are as in package single, for each hold.
//     A resumed hold keeps its permits: another Request.Permits is ErrInvalid.
//
// # The order of waiters
//
// Waiters queue at the server, with one place for each process, as in package single with
// Config.Fair. The longest waiting one is first. While it waits nobody else gets permits: no
// newcomer, no request with NoWait, and no other waiter, even if enough permits are free for these
// and not for the first one. So small requests do not starve a large one: once it is first, it gets
// its permits as soon as enough of the present holders have released theirs or expired. Until then
// it waits only for those that began to wait earlier.
//
// A release wakes the first waiter. If its attempt gets permits and leaves some free, it wakes the
// next one, and so on, until no permits are free, or too few for the waiter that is first by then.
// A first waiter that freezes or dies keeps the others out for two of their polls, about 4 s. A dead
// one does so for one poll, about 2 s, where the server counts the receivers of a message. One that
// gives up keeps nobody out: its process removes its place, and wakes those behind it.
//
// In each process middleware/retry queues the waiters. The next one tries as soon as the one before
// it has its permits. So a process can have many holds of a name, but one place in the queue.
// Places are ordered by how long their waiters have waited, so the process gets no more than its
// turn.
//
// # Changing the limit
//
// The limit is stored with the holds. While anybody holds permits, or a MinHold keeps them taken,
// an acquire by a Locker with another Config.Permits returns a *[LimitError] with both limits.
// Holds acquired under either limit can still be renewed and released. Once all permits are free,
// the next acquire sets the limit.
//
// To change the limit while it is in use, deploy programs with the new Config.Permits and with
// Config.Resize. The first acquire of one of them sets the limit, even if it is refused. A higher
// limit applies at once. With a lower one, present holders keep their permits, and nobody gets
// permits until enough are released. Programs with the old limit then get a LimitError until they
// are replaced. If programs with two limits both set Resize, each acquire replaces the limit of the
// others and is granted by its own.
//
// # Cost
//
// An acquire, a renewal, a release and a refusal cost the server O(log n) in the number of holds,
// and O(log n) more for each expired hold removed. Inspect costs O(log n), and O(1) more for each
// expired hold.
//
// # What is not guaranteed
//
// A semaphore cannot be a node of a quorum: a majority of n permits on each node would be more than
// n in all. redlock.New refuses it. The Locker neither waits nor renews: put middleware/retry and
// strategies/watchdog around it. middleware/handover does not hand permits over. A failover to a
// replica without the last writes may grant too many permits, unless Config.MinReplicas guards
// against it (see package single). Other libraries, which lock with SET NX, find a key of another
// type; a semaphore finds their key to be none of its own.
//
// Leases are in whole milliseconds of the server's clock. One may end up to 1 ms before its TTL;
// this uses up some of a Deadline's allowance for drift.
//
// Servers: Redis 6.2 and Valkey 7.2 or later. An ACL must allow, beside what package single needs,
// the commands exists, pexpireat, zcount and zrangebyscore.
package semaphore
