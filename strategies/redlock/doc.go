// Package redlock is a quorum: a lock is held where more than half of a number of independent nodes
// hold it. Each node is a locker.Locker, of any strategy over any provider.
//
// The algorithm is that of the Redis documentation ("Distributed Locks with Redis", S. Sanfilippo),
// with what its critics asked for: fencing tokens that increase (M. Kleppmann, "How to do
// distributed locking", 2016), and deadlines by the monotonic clock.
//
// # What is guaranteed
//
//   - All nodes are asked at once. An attempt ends as soon as a quorum is won or out of reach, so
//     that nodes that hang cost nothing while a quorum answers. Where the answer of one that hangs
//     decides, Config.AttemptTimeout ends the waiting.
//   - Lock.Deadline is that of the quorum-th latest node. A node's Deadline counts from when it was
//     asked, less the drift, so that this is "TTL - elapsed - drift". If less
//     than Config.MinValidity is left, the lock is released and the error is ErrLost; a resume is
//     undone and the error is ErrUnknownOutcome.
//   - A node lock that is acquired late joins the lock if the lock is held by then; otherwise it is
//     released. If a renewal has moved the Deadline meanwhile, the node lock is renewed up to it at
//     once. What a losing attempt acquired is released without waking waiters.
//   - Renew needs the quorum. In the background it restores the lock at nodes that do not hold it,
//     because they were restarted or were not reached before, even if it misses the quorum. Such a
//     node counts once it holds until the Deadline. A node that has yet to answer an earlier
//     renewal is sent the next one after that; the earlier answer does not count for the next.
//   - Release reaches all nodes, and waits for a quorum of them, for at most twice
//     Config.AttemptTimeout, or once that where its ctx has ended; the rest goes on behind.
//   - Renewals and conversions of one lock are done one at a time. What a slow node still does for
//     one, after the quorum has answered, is not in the way of the next.
//   - The Deadline is never past what a quorum of nodes has granted. Where nodes lose what they
//     had, the Lock ends, ErrLost, when the quorum of the others does, unless a renewal restored it
//     before; at once where fewer than a quorum are left.
//   - Renew and Release say ErrLost only where too few nodes are known to hold the lock. One that
//     is being asked may hold it, for an AttemptTimeout.
//   - locker.ErrNotAcquired means that the lock would have been acquired without the other holders.
//     An outage is a [*QuorumError], with a [*NodeError] for each node that failed. A node also
//     counts as failed if its Locker panicked, or returned a lock that had ended or has another
//     mode.
//   - A node counts as failing when calls to it fail or get no answer, and none has succeeded or
//     been refused for an AttemptTimeout, or ever. The change is reported once, and so is the
//     recovery, to locktrace.Trace (NodeFailing, NodeRecovered) in a goroutine of the quorum's own. If
//     a failing node refuses because it no longer holds its node lock, the errors of operations
//     that miss the quorum list it.
//
// The mode, re-entry, renewals and hand-over are those of the nodes: Shared over nodes of rwhash;
// re-entry over reentrant, by the owner, which is the same at all nodes; strategies/watchdog and
// middleware/retry go around the quorum, not around the nodes.
//
// Lock.Upgrade and Lock.Downgrade need the quorum, too, and release nothing. A downgrade gives the
// exclusive hold up from the call on, whatever its outcome: ErrUnknownOutcome where the quorum was
// missed, and the next renewal tells the nodes again. An upgrade wins with a quorum of nodes that
// are known to be exclusive until the Deadline; where it misses it, the nodes that were upgraded,
// or may have been, are taken back at once, or with the next renewal. It returns when so many are
// that others can share the lock, within its AttemptTimeout. What is not exclusive does not count
// then. Where so many nodes convert nothing that no quorum can, both are errors.ErrUnsupported, and
// the lock stays as it is.
//
// With Config.Quorum set to all nodes, a lock is held at all of them or not at all. So a team moves
// from one deployment to another: those who lock at both exclude those who lock at either.
//
// # Fencing
//
// Each node mints a token; the highest of a quorum is the lock's, and it is written back to a
// quorum that still holds, before the lock is handed over. Two quorums share a node; there the
// second was granted after the first had ended, so that its token is above what was written there:
// tokens strictly increase, as long as one node that both quorums share keeps its counter. The cost
// is one more round trip, to the nodes whose own token is lower, all at once. A node that comes
// later, or is restored, is raised before it counts. Nodes that mint no tokens fail a fenced
// request.
//
// # Handles
//
// Lock.Handle names the parts at all nodes that hold at that moment; right after the acquire that
// may be the quorum alone, so that the hand-over cannot do without any of them. What a node gives
// later is named by later Handles; after a hand-over it is nobody's until the TTL. Resume takes
// them over and needs the quorum, too; where it is missed, or cut off, what was taken over is given
// back to whom it was taken from (lease.OpGiveBack), and the error matches ErrUnknownOutcome. It
// is ErrNotHeld where so many nodes hold no such thing that no quorum can, and none was taken over.
// Once a quorum of the nodes that a Handle names says that they do not hold it, the Lock is lost,
// wherever it was restored: one hold is never two Locks; a node whose lease had ended before counts
// among them until a renewal has shown that no quorum can have given the hold away. A node where it
// was restored while a resume was under way that failed may be held by nobody until the TTL; so may
// all, where the lock was released while a resume had it that was undone after. What the Handle
// names can be taken over then.
//
// # What is not
//
// It is assumed that a node keeps its keys over a restart (appendonly yes, appendfsync always), or
// stays away for the longest TTL; that nodes share nothing, so that a replica is no node; and that
// no clock is stepped, or runs faster than another, by more than the drift. Where this does not
// hold, two may hold at once, and the fencing token tells them apart. Nodes that are one server are
// found when one refuses an attempt and names the same attempt as the holder; the error is a
// locker.InvalidError.
//
// Re-entry: a nested hold has the token of the hold around it or, since it may be won at other
// nodes, a higher one. Where the resource refuses what is below the highest token that it saw, use
// the nested one's for what follows, or the outer one's alone.
//
// A release returns once a quorum has answered, and a refused attempt does not wait for all nodes.
// So the next Acquire of the name by the same Locker may be refused by a call of the earlier hold
// that is still in flight at a node. Such a refusal names the owner of the earlier hold and does
// not count: the node is asked again when that call has ended, if the attempt or its lock has not.
//
// A quorum has no driver of its own whose Close could wait for its work. If the ctx of an Acquire
// ends, it releases the node locks that it acquired before it returns: for that it waits as long
// again as the attempt took, at least 20 ms and at most AttemptTimeout. Unanswered commands are
// left to the nodes' own clean-up, for which the Close of their drivers waits. An attempt that was
// refused, or whose nodes failed, leaves unanswered nodes to the background, as a release does: no
// Close waits for that, and a lock that such a node grants later stays there until its TTL. The
// quorum of the next holder can do without that node.
//
// Concurrent attempts may each acquire some of the nodes, so that none reaches the quorum.
// middleware/retry keeps them apart by a random delay ([Config].WakeJitter); an Acquire without it
// is one attempt.
// Of 200 rounds in which ten tried three free nodes at once over a loopback device, one won in 196
// to 199. A lock that asks one node after the other always has a winner, for as many round trips as
// the quorum has nodes: here all are asked at once. Wake-ups come from one of the nodes that
// refused. Nodes are to be bare strategies: a retry or a watchdog inside of the quorum would wait
// and renew for one node alone.
package redlock
