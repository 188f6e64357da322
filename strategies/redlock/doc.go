// Package redlock provides locks on a quorum of independent nodes: a lock is held while more than
// half of the nodes hold it. Each node is a locker.Locker over any provider, of any strategy but
// semaphore, and not itself a quorum.
//
//	quorum, err := redlock.New([]locker.Locker{a, b, c}, redlock.Config{})
//	...
//	l, err := holdfast.Wrap(quorum, holdfast.Config{}) // waits and renews
//
// The algorithm is from the Redis documentation ("Distributed Locks with Redis", S. Sanfilippo),
// with the additions of its critics: increasing fencing tokens (M. Kleppmann, "How to do
// distributed locking", 2016), and deadlines by the monotonic clock. [docs/redlock.md] describes it
// and the differences.
//
// # What is guaranteed
//
//   - All nodes are asked at once. An attempt ends as soon as the quorum is reached or out of
//     reach: a hanging node costs no time while a quorum answers. Otherwise Config.AttemptTimeout
//     ends the waiting.
//   - Lock.Deadline is the quorum-th latest of the nodes' Deadlines, and never later than a quorum
//     has granted. If less than Config.MinValidity is left, the lock is released and the error is
//     ErrLost; a resume is undone and the error is ErrUnknownOutcome.
//   - A node lock acquired late joins the lock while it is held; otherwise it is released.
//   - Renew needs the quorum. In the background it restores the lock at nodes without it, even if
//     it misses the quorum.
//   - If nodes lose their node locks, the Lock ends with the quorum of the others: ErrLost.
//   - Release reaches all nodes. It waits for a quorum of them for Config.ReleaseTimeout at most,
//     and for one AttemptTimeout at most once its ctx has ended. The rest continues in the
//     background.
//   - locker.ErrNotAcquired means that the lock would have been acquired without the other holders.
//     An outage is a [*QuorumError], with a [*NodeError] for each failed node. A node also fails if
//     its Locker panics, or returns an ended lock or one of another mode.
//   - A node's failure is reported once, and so is its recovery, to locktrace.Trace (NodeFailing,
//     NodeRecovered), in a goroutine of the quorum's own.
//
// Mode, re-entry and renewals are those of the nodes: Shared over nodes of rwhash; re-entry over
// reentrant, by the owner, the same at all nodes. strategies/watchdog and middleware/retry go
// around the quorum; inside they would wait and renew for one node alone.
//
// Lock.Upgrade and Lock.Downgrade need the quorum, and release nothing. A downgrade gives up
// exclusivity from the call on, whatever its outcome; if it misses the quorum, the error is
// ErrUnknownOutcome. An upgrade succeeds with a quorum of nodes known to be exclusive until the
// Deadline; otherwise the upgraded nodes are made shared again. If too few nodes for a quorum can
// convert, both return errors.ErrUnsupported, and the lock stays as it is.
//
// With Config.Quorum set to all nodes, a lock is held at all of them or not at all. So a team can
// move from one deployment to another: a program with locks at both excludes those with locks at
// either.
//
// # Fencing
//
// Each node mints a token; the highest of a quorum is the lock's, and it is written back to a
// quorum that still holds, before the caller gets the lock. Tokens strictly increase as long as one
// node shared by both quorums keeps its counter. A nested hold has the token of the hold around it,
// or a higher one. A node without tokens fails a fenced request.
//
// # Handles
//
// Lock.Handle names the node locks held at that moment. Resume takes them over and needs the
// quorum. If it misses the quorum, it undoes the take-over, and the error matches
// ErrUnknownOutcome; it is ErrNotHeld if too few nodes for a quorum may still hold the lock. Once a
// quorum of the nodes named by a Handle denies holding it, the Lock is lost: one hold is never two
// Locks.
//
// # What is not guaranteed
//
// It is assumed that each node keeps its keys over a restart (appendonly yes, appendfsync always),
// or stays away for the longest TTL; nodes share nothing, so a replica is no node; and no clock is
// stepped, or runs faster than another, by more than the drift. Otherwise two may hold at once, and
// the fencing token orders them. Two nodes at one server are found when one refuses an attempt and
// names the same attempt as the holder; the error is a locker.InvalidError.
//
// A quorum has no driver whose Close could wait for its work. If its ctx or MaxWait ends, Acquire
// releases its node locks before it returns; it waits as long again as the attempt took, at least
// 20 ms and at most AttemptTimeout. The nodes clean up unanswered commands. A node lock granted
// after a refused attempt or a release, and after the program has ended, stays until its TTL.
//
// Concurrent attempts may each acquire some of the nodes, and none the quorum. middleware/retry
// keeps them apart by a random delay (Config.WakeJitter); an Acquire without it is one attempt.
// Wake-ups come from one of the refusing nodes.
//
// [docs/redlock.md]: https://github.com/holdfast-go/holdfast/blob/main/docs/redlock.md
package redlock
