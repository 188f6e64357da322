// Package handover hands a lock over from one request of a process to the next, without a command
// to the server, as cohort locks do (Dice, Marathe, Shavit: "Lock Cohorting", PPoPP 2012).
//
//	hand, err := handover.New(handover.Config{Tenure: 10 * time.Millisecond})
//	wait, err := retry.New(retry.Config{})
//	...
//	l = locker.Chain(l, hand, wait)
//
// It is for a hot lock: one that several goroutines of a process want at the same time, for less
// than a round trip. holdfast.Config.HandOver puts it around the usual chain. It belongs around
// middleware/retry and strategies/watchdog, and inside tracing, metrics and logging.
//
// # How it works
//
// The requests for one name form a line, first in, first out. The first one acquires from the
// wrapped Locker, with its waiting and renewal. From then on this process has a tenure. A release
// passes the hold on to the next request of the line, the heir, which gets a Lock of its own. Once
// Config.Tenure has passed since the acquire, or if nobody waits, the release is sent. Then the next
// one in the line asks the wrapped Locker, as one that has waited: it passes no process that the
// release has woken. If the strategy keeps no queue at the server, it asks after a pause of four
// round trips, at least 1 ms; otherwise it pauses once in 100 ms, for other libraries, which poll.
//
// # What is guaranteed
//
//   - Each Lock is a hold of its own: with its own Owner, events and fencing token. A Lock that was
//     released has ended, and no operation of it acts on the hold any more. The lease keeps its
//     Deadline. If less than a quarter of it is left, the release is sent.
//   - Fencing tokens increase with each Lock. They are reserved at the server, as many as
//     microseconds have passed since the acquire (at least 16), so no token is further ahead of the
//     server's clock than the first one. The release that reserves them waits for the answer, a second
//     at most. locker.State.Fence, as Inspect and Break return it, is at least every token of the hold
//     that was or will be handed out. Tokens that are reserved and not used are nobody's.
//   - A request waits in the line if it is exclusive, may wait, has no owner (in the Request or the
//     ctx), MinHold or Resume, and asks for the TTL of the tenure, and for a fencing token only if the
//     first request did. Other requests go to the wrapped Locker at once, and compete with the
//     tenure there. A nested acquire fails with locker.ErrNested as it does without hand-overs.
//   - A request gives up when its ctx ends or MaxWait has passed. The error names the holder if this
//     process has the lock. If another request asks the server, it is what that knows, as in the queue
//     of middleware/retry: an outage is not reported as locker.ErrNotAcquired. One that gives up just
//     when the lock is handed over to it gets the lock, and no error.
//   - A lock whose Handle was asked for is released: another process may have resumed it. The Handle
//     of a Lock that was released names no hold.
//   - A hold that was converted is not handed over, nor any of a semaphore with several permits or of
//     a strategy that is reentrant ([lease.Reentrant]). In a quorum no fencing tokens can be reserved:
//     a lock is released for a request that wants one.
//   - Close of the driver ends the waits, and nothing is handed over after it.
//   - Trace.Woken reports a hand-over as [locktrace.ByHandOver], with the owner before.
//
// # What it weakens
//
// The release that hands over asks the server nothing. If the server has lost the hold, or Break has
// ended it, the caller does not learn that from its release. While a lock is handed on, the server
// is asked by a renewal behind the hand-overs: the first one after a twentieth of the TTL, at most
// 25 ms, without an answer. If there is no answer within twice that time, the next release is sent.
// If the hold is gone, the Lock that has it is lost (locker.ErrLost), and nothing is handed over any
// more. So a hold is handed on for no longer than a tenth of the TTL, at most 50 ms, after the server
// has lost it, or after the first hand-over that follows if its holder had it for longer than that.
//
// While requests wait and nothing is handed over, the server is asked once a second, by a renewal
// for 1 ms, which changes nothing: the holder's lease lasts no longer because others wait.
//
// Inspect, and the refusals of other processes, name the first Note of a tenure.
//
// Renewals by the wrapped Locker's watchdog count for the tenure: watchdog.Config.MaxHold bounds the
// time from the acquire at the server.
//
// With n processes that wait for one name, each waits for about n times Config.Tenure.
//
// A callback that blocks while its request is in the line, such as Trace.Waiting or Trace.Woken,
// keeps the lock once it is handed over to that request.
package handover
