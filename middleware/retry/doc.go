// Package retry makes Acquire wait: for the holder to let go, and for an outage to pass.
//
// The waiters of one wrapped Locker queue by name, first in, first out, and only the head of a queue sends: a process never
// has more than one attempt under way for a name. Where the head is a shared request, all shared ones up to the first
// exclusive one are the head together. A new head tries at once. After a refusal it waits for a wake-up, for the end of the
// holder's lease or for the backoff, whichever comes first. Wake-ups come from this process's own releases, and from the
// channel that the strategy names ([locker.ContentionError]), to which a queue keeps one subscription while it is
// contended. They are hints: where there are none, or one is lost, the head polls.
//
// # What is guaranteed
//
//   - An acquire returns soon after its ctx ends or Request.MaxWait has passed, wherever it waits, and leaves no timer or
//     subscription behind it. Waiting takes no goroutine but the caller's; a queue has one while it asks for its
//     subscription, which it gives up when its last waiter leaves.
//   - First come, first served among the waiters of one process and name, with these exceptions: NoWait and Resume do not
//     queue, and a request with an owner ([locker.Request], [locker.WithOwner]) tries once before it does, since a nested
//     acquire must not wait behind those who wait for its own lock.
//   - [locker.ErrNotAcquired] means that the last answer was "held by another". An outage, and an attempt that was cut off
//     with its outcome unknown, is reported as what it is.
//   - Request.NoWait makes one attempt. Request.Resume is tried again only after an error that proves that nothing ran.
//
// # What is not
//
// There is no order between processes: their heads compete, unless the strategy keeps one by [locker.WaitingFrom], as rwhash
// does among writers. MaxAttempts and the Policy's end concern what a request sends;
// while it queues behind others of its process it sends nothing, and only MaxWait and ctx end its waiting.
//
// A MaxWait that has passed matches [locker.ErrMaxWait], and not context.DeadlineExceeded unless the attempt that it cut off
// reported that.
package retry
