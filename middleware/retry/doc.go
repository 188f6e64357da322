// Package retry makes Acquire wait until the lock is free, and through an outage.
//
//	wait, err := retry.New(retry.Config{})
//	...
//	l = locker.Chain(l, wait)
//
// By default it waits until the ctx of the acquire ends. Request.MaxWait bounds one acquire,
// Config.MaxAttempts its attempts, and Config.Policy sets the pauses between them.
//
// # How it waits
//
// The waiters of one wrapped Locker queue by name, first in, first out, and only the first one
// sends attempts. If the first one is a shared request, it sends for all shared requests up to the
// first exclusive one: while it is refused they send nothing, and once it has the lock they try at
// once. A new first waiter tries at once. After a refusal it waits for a wake-up, the end of the
// holder's lease or the backoff, whichever comes first. Wake-ups come from this process's own
// releases, and from the strategy's channel ([locker.ContentionError]): a contended queue keeps one
// subscription to it. They are hints: if there are none, or one is lost, the first waiter polls.
//
// If the strategy keeps a queue of waiters at the server ([lease.Hint]), the process has one place
// in it for each name, and a release wakes one process. The first waiter then polls only
// after the refusal's RetryAfter, under three conditions: it has its place and a subscription, the
// holder is not another library's, and Config.Policy is not set. RetryAfter is 2 s at the head of the
// server's queue, or the rest of the lease if shorter, and up to 60 s far behind.
//
// Unless the strategy's order is strict ([lease.Hint]), an acquire at the server begins a
// turn of this process. A turn lasts for 1 ms, and for up to 3 ms while a waiter from its beginning
// still waits. A release within the turn leaves the lock to the next waiter of this process and wakes
// no other process. The next waiter sends its attempt right behind the release, without waiting for
// the answer; if the attempt comes first, it is repeated after the answer. After a release has woken
// another process, the first waiters of this one make no attempt for 1 ms.
//
// # What is guaranteed
//
//   - An acquire returns soon after its ctx ends or Request.MaxWait has passed, at any point of the
//     wait. Waiting takes no goroutine but the caller's, except one per queue while it subscribes.
//     When the last waiter gives up, the queue unsubscribes. When the last waiter acquires the
//     lock, the queue keeps the subscription for a second, for at most 1,000 names: the next
//     acquire of a contended name then has a place with its first attempt.
//   - The waiters of one process and name are served in order of arrival, with three exceptions.
//     NoWait and Resume do not queue. A request whose owner may hold the lock tries before its turn
//     (see below). If the strategy itself orders readers and writers (lease.Traits.Ordered, as
//     rwhash does), shared and exclusive requests have separate queues, and the strategy decides
//     between the two first waiters.
//   - If the strategy is reentrant ([lease.Traits]), a nested acquire does not queue behind waiters
//     for its owner's lock. A request with an owner ([locker.Request], [locker.WithOwner]) makes an
//     attempt before its turn once a refusal of any waiter, or an acquire of this process while
//     others waited, names its owner as the holder. If no answer has named the holder, the first
//     waiter asks by an attempt of its own: 250 ms after the latest answer or after the entry, and
//     after an error when the policy's pause ends.
//   - A request nested in a hold of the same name does not wait for itself, if its ctx carries the
//     hold ([locker.Do], [locker.Lock.Context]) and the hold was acquired through this retry: if the
//     request is refused, it fails with [locker.ErrNested]. If it would have to queue, it makes its
//     attempt at once, outside the queue. A request
//     with only the values of such a ctx (context.WithoutCancel) is refused too; [locker.WithOwner] with another
//     owner, or with none, begins a new call chain. Not refused are requests within a hold that has
//     ended or is of another Locker, shared requests beside a shared hold, and requests to a
//     semaphore of several permits.
//   - A process sends few attempts for a name, however many requests wait: the first waiter's, and
//     those of requests that do not queue. Attempts are concurrent only if several requests can hold
//     the lock together: shared requests after the first of them was acquired or before any was
//     refused, and requests of a reentrant lock's owner, one each time the owner is found to hold it.
//   - [locker.ErrNotAcquired] means: the last answer was "held by another", or another request of
//     this process was ahead. The error names the holder if it is known. It is returned too if ctx
//     or MaxWait ends during a further attempt; the caller holds nothing, and anything left by this
//     attempt is cleaned up in the background. An outage is not reported as contention. It is an
//     attempt that failed for another reason, or consecutive attempts without an answer for a second
//     in all (or for twice the fastest attempt of the queue, if longer). An attempt cut off in less
//     time than the fastest does not count. A request that gives up in an outage reports the silent
//     server, the length of the silence, and the last answer before.
//   - An error matches [locker.ErrUnknownOutcome] if an attempt of the request itself had an unknown
//     outcome and no later attempt of its own was refused, regardless of the answers to other
//     requests. It matches [driver.ErrNotSent] if the last attempt surely sent nothing and none of
//     the request's own is of unknown outcome.
//   - Request.NoWait makes one attempt. Request.Resume is tried again only after a proof that
//     nothing ran. MaxWait bounds both.
//
// If a lock was released before its Request.MinHold had passed (ContentionError.Released), its name
// stays taken until then, and no wake-up is published at that time: the first waiter tries again
// when ContentionError.Left has passed.
//
// Near the end of ctx or MaxWait, a waiter of a contended lock sends no attempt if the time left is
// shorter than the fastest attempt of its queue.
//
// # What is not guaranteed
//
// The strategy orders the waiters of several processes, by [lease.WaitingFrom]: single, reentrant,
// rwhash and semaphore wake the longest waiting one. In a quorum the first waiters compete.
// MaxAttempts and the Policy's end apply to a request's own attempts. While it queues behind others
// it sends none, and only MaxWait and ctx end its wait.
//
// After MaxWait the error matches [locker.ErrMaxWait], and context.DeadlineExceeded only if the attempt
// cut off by it reported that.
package retry
