// Package retry makes Acquire wait: for the holder to let go, and for an outage to pass.
//
// The waiters of one wrapped Locker queue by name, first in, first out, and only the first one sends. Where that is a shared
// request, it asks for all shared ones up to the first exclusive one: while it is refused they send nothing, and they try at
// once when it has the lock. A new first waiter tries at once. After a refusal it waits for a wake-up, for the end of the
// holder's lease or for the backoff, whichever comes first. Wake-ups come from this process's own releases, and from the
// channel that the strategy names ([locker.ContentionError]), to which a queue keeps one subscription while it is
// contended. They are hints: where there are none, or one is lost, the first waiter polls.
//
// # What is guaranteed
//
//   - An acquire returns soon after its ctx ends or Request.MaxWait has passed, wherever it waits, and leaves no timer or
//     subscription behind it. Waiting takes no goroutine but the caller's; a queue has one while it asks for its
//     subscription, which it gives up when its last waiter leaves.
//   - First come, first served among the waiters of one process and name, with these exceptions: NoWait and Resume do not
//     queue; a request whose owner may hold the lock asks before its turn (see below); and where the strategy itself decides
//     between readers and writers (ContentionError.Ordered, as rwhash does), shared and exclusive requests queue apart, so
//     that no one waits behind the other mode for longer than in another process.
//   - A nested acquire does not wait behind those who wait for its own lock. A request with an owner ([locker.Request],
//     [locker.WithOwner]) that has to queue tries early: when it enters, again after an error, with backoff, until a server's
//     answer says whether its owner holds the lock, and again whenever others are refused because its owner holds it.
//   - A process sends few attempts for a name, however many wait: one at a time, beside it one early attempt (another where
//     that is not answered within 250 ms), and what does not queue. The answer to an attempt counts for all owners who
//     entered before it was sent. Not counted are attempts that enter together: those of a shared group whose first request
//     got in, of shared requests for a lock at which nobody was refused yet, and of one owner that was seen to enter again.
//   - [locker.ErrNotAcquired] means that the last answer was "held by another", or that another request of this process was
//     ahead; it is said who holds the lock, as far as that is known. An attempt that ctx or MaxWait cuts off changes nothing
//     in that, though its outcome is unknown: the caller holds nothing, and what it may have left is cleaned up behind. An
//     outage is reported as what it is: an attempt that failed for another reason, or was under way for a second (or
//     for twice as long as attempts take here) without an answer.
//   - Request.NoWait makes one attempt. Request.Resume is tried again only after an error that proves that nothing ran.
//     MaxWait bounds both.
//
// Near the end of ctx or MaxWait, no attempt is sent that could not be answered in time, judged by the fastest of the queue.
//
// # What is not
//
// There is no order between processes: their first waiters compete, unless the strategy keeps one by [locker.WaitingFrom], as
// rwhash does. MaxAttempts and the Policy's end concern what a request sends; while it queues behind others of its process it
// sends nothing, and only MaxWait and ctx end its waiting.
//
// A MaxWait that has passed matches [locker.ErrMaxWait], and not context.DeadlineExceeded unless the attempt that it cut off
// reported that.
package retry
