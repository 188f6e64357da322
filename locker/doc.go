// Package locker is what a program that takes locks imports: [Locker], [Lock], [Request], the errors, and [Do].
//
// A Locker comes from a strategy (strategies/single and its neighbours) over a driver (providers/...), wrapped in middleware
// (middleware/retry waits, middleware/tracing tells). [Chain] puts them together; the root package holdfast does so in one
// call.
//
// # What is guaranteed
//
// A lock is a lease: it ends by itself, TTL after it was last renewed, by the server's clock. [Lock.Deadline] is the
// instant, by the local clock and with a margin for drift, until which nobody else can hold it. [Lock.Done] closes then,
// or as soon as the loss is known, even when no packet comes back. Loss is final: no later answer reopens a Lock.
//
// An error tells what is known. [ErrNotAcquired] means that the last answer was "held by another", never an outage.
// [ErrUnknownOutcome] means that the answer did not come, and that what the command may leave behind is cleaned up.
// [ErrNotReplicated] means that too few replicas acknowledged it, where a strategy was told to ask them.
//
// # What is not
//
// Done is a signal, not a barrier. A process that is paused for longer than its lease goes on where it was and may write
// after the next holder began. What must not be written late needs the fencing token ([Request].Fenced, [Lock.Fence]),
// checked where it is written (Kleppmann, "How to do distributed locking", 2016).
//
// It is assumed that server clocks are not stepped by more than the drift (1 % of the TTL and 2 ms) less the millisecond by
// which they round, that no acknowledged write is lost, and that the server does not evict keys (maxmemory-policy
// noeviction). A failover of an asynchronous replica can lose an acknowledged write, and with it exclusion.
package locker
