// Package handover hands a lock over from one request of a process to the next, without a command
// to the server, as cohort locks do (Dice, Marathe, Shavit: "Lock Cohorting", PPoPP 2012).
//
//	hand, err := handover.New(handover.Config{Tenure: 10 * time.Millisecond})
//	wait, err := retry.New(retry.Config{})
//	...
//	l = locker.Chain(l, hand, wait)
//
// It is for a hot lock: several goroutines of a process want it at the same time, for less than a
// round trip. holdfast.Config.HandOver puts it around the usual chain. It belongs around
// middleware/retry and strategies/watchdog, and inside tracing, metrics and logging.
//
// # How it works
//
// The requests for one name form a line, first in, first out. The first one acquires from the
// wrapped Locker, with its waiting and renewal. From then on this process has a tenure. A release
// passes the hold on to the next request of the line, the heir. The heir gets a Lock of its own. Once
// Config.Tenure has passed since the acquire, or if nobody waits, the release is sent. Once it is
// answered, or after 50 ms without an answer, the next request in the line asks the wrapped Locker,
// marked as waiting: it passes no process woken by the release. If the strategy keeps no queue at the
// server, the request asks after a pause of four round trips, at least 1 ms and at most 100 ms;
// otherwise it pauses once in 100 ms, for other libraries: they poll.
//
// # What is guaranteed
//
//   - Each Lock is a hold of its own: with its own Owner, events and fencing token. A released Lock
//     has ended, and no operation of it acts on the hold any more. The lease keeps its Deadline. If
//     less than a quarter of it is left, the release is sent.
//   - Fencing tokens increase with each Lock. They are reserved at the server, as many as
//     microseconds have passed since the acquire (at least 16), so no token is further ahead of the
//     server's clock than the first one. The reserving release waits for the answer, a second at most.
//     locker.State.Fence, as Inspect and Break return it, is at least every past or future token of
//     the hold. Tokens reserved and not used are nobody's.
//   - A request waits in the line if it is exclusive, may wait, has no owner (in the Request or the
//     ctx), MinHold or Resume, and asks for the TTL of the tenure, and for a fencing token only if the
//     first request did. Other requests go to the wrapped Locker at once, and compete with the
//     tenure there. A nested acquire fails with locker.ErrNested as it does without hand-overs.
//   - A request gives up when its ctx ends or MaxWait has passed. The error names the holder if this
//     process has the lock. If another request asks the server, the error is that of a waiter in the
//     queue of middleware/retry: an outage is not reported as locker.ErrNotAcquired. If the lock is
//     handed over just when a request gives up, the request gets the lock, and no error.
//   - A lock whose Handle was asked for is released: another process may have resumed it. The Handle
//     of a released Lock names no hold.
//   - A converted hold is not handed over, nor any of a semaphore with several permits or of a
//     reentrant strategy ([lease.Traits]). In a quorum no fencing tokens can be reserved: a lock is
//     released if the next request wants one.
//   - Close of the driver ends the waits, and nothing is handed over after it.
//   - Trace.Woken reports a hand-over as [locktrace.ByHandOver], with the owner before.
//
// # What it weakens
//
// A hand-over asks the server nothing. If the server has lost the hold, or Break has ended it, the
// caller does not learn it from its release. While a lock is handed on, renewals behind the
// hand-overs ask the server: the first hand-over later than a twentieth of the TTL, at most 25 ms,
// after the latest answer starts one. If there is no answer within twice this time, the next release
// is sent. If the hold is lost, its present Lock is lost (locker.ErrLost), and nothing is handed over
// any more. So a hold is handed on for no longer than a tenth of the TTL, at most 50 ms, after the
// server has lost it. If the present holder had it for longer, the time counts from the next
// hand-over.
//
// While requests wait and nothing is handed over, a renewal for 1 ms asks the server once a second. It
// changes nothing: the holder's lease lasts no longer because others wait.
//
// Inspect, and the refusals of other processes, name the first Note of a tenure, or the latest of
// SetNote.
//
// Renewals by the wrapped Locker's watchdog count for the tenure: watchdog.Config.MaxHold bounds the
// time from the acquire at the server.
//
// With n waiting processes, each waits for about n times Config.Tenure.
//
// If a callback of a request in the line blocks, such as Trace.Waiting or Trace.Woken, and the lock is
// handed over to that request, the lock stays taken until the callback returns.
package handover
