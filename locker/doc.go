// Package locker is for programs that take locks: [Locker], [Lock], [Request], the errors, and
// [Do], to run a function under a lock.
//
//	req := locker.Request{Name: "invoice:42", TTL: 30 * time.Second, MaxWait: 5 * time.Second}
//	err := locker.Do(ctx, l, req, func(ctx context.Context, lock *locker.Lock) error {
//		return send(ctx) // ctx ends when the lock is lost
//	})
//	if errors.Is(err, locker.ErrNotAcquired) {
//		// another holds it, and MaxWait has passed
//	}
//
// [Try] does so if the lock is free, and [DoAll] under several locks. [Locker].Acquire returns the
// Lock itself. [Inspect] and [Watch] show who holds a lock, [Break] ends a hold by its name, and
// [Resume] continues a hold in another process.
//
// A Locker is a strategy (strategies/single and others) over a driver (providers/...), wrapped in
// middleware: middleware/retry waits, strategies/watchdog renews, middleware/tracing reports.
// [Chain] combines them; the root package holdfast does so in one call.
//
// Authors of strategies and middleware also use package lease, and package locktrace for events.
//
// # What is guaranteed
//
// A lock is a lease: it ends by itself, one TTL after it was last renewed, by the server's clock.
// [Lock.Deadline] is the time, by the local clock and with a margin for drift, until which no
// conflicting hold can exist. [Lock.Done] is closed at that time, or as soon as a loss is known, even
// if no packet comes back. A loss is final: no later answer reopens a Lock.
//
// An error is precise. [ErrNotAcquired]: the last answer was "held by another", never an outage.
// [ErrUnknownOutcome]: no answer came, and a possible hold is cleaned up. [ErrNotReplicated]: too
// few replicas acknowledged a write, if the strategy was configured to ask them.
//
// # Minimum hold
//
// With [Request].MinHold, a Release ends the hold for its owner and leaves the name taken until
// MinHold has passed since the acquire. A job of 20 ms then runs once per tick on replicas with
// clocks that differ by less than MinHold.
//
//   - MinHold counts from the arrival of the answer to the acquire. A release sends the rest of it,
//     and a resend sends less; the server's clock measures that time. So the name is never free too
//     soon. If the release takes long to arrive, the name is free later by as much, but at the end
//     of the lease at the latest.
//   - If the holder dies, the name stays taken until the lease ends. A lease is never shorter than
//     MinHold: a shorter TTL is ErrInvalid, and a shorter default TTL is raised.
//   - After the release nobody holds the lock: it cannot be renewed, released or resumed, and the
//     owner is refused like anybody else. After a shared hold the name stays taken for exclusive
//     requests only.
//   - A refusal ([ContentionError]) has Released set, the holder's Owner and Note, and the rest of
//     MinHold in Left. [Inspect] returns a State with Held and 0 Holds.
//   - Waiters acquire the lock when MinHold has passed. The release wakes the first one: it is
//     refused and learns the time.
//   - A Handle records the time left of MinHold when it is made. That time counts from the resume.
//   - An abandoned acquire does not leave the name taken.
//
// # What is not guaranteed
//
// Done is a signal, not a barrier. A process suspended for longer than its lease continues, and may
// write after the next holder began. What must not be written late needs the fencing token
// ([Request].Fenced, [Lock.Fence]), checked where it is written (Kleppmann, "How to do distributed
// locking", 2016).
//
// It is assumed that server clocks are not stepped by more than the drift (1 % of the TTL and 2
// ms), less the millisecond by which they round; that no acknowledged write is lost; and that the
// server does not evict keys (maxmemory-policy noeviction). A failover to an asynchronous replica
// can lose an acknowledged write, and with it exclusion.
package locker
