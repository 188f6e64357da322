// Package redlock is a quorum: a lock is held where more than half of a number of independent nodes hold it. Each node is a
// locker.Locker, of any strategy over any provider.
//
// The algorithm is that of the Redis documentation ("Distributed Locks with Redis", S. Sanfilippo), with what its critics asked
// for: fencing tokens that increase (M. Kleppmann, "How to do distributed locking", 2016), and deadlines by the
// monotonic clock.
//
// # What is guaranteed
//
//   - All nodes are asked at once. An attempt ends as soon as a quorum is won or out of reach, so that nodes that hang cost
//     nothing while a quorum answers. Where the answer of one that hangs decides, Config.AttemptTimeout ends the waiting.
//   - Lock.Deadline is that of the quorum-th latest node. A node's Deadline counts from when it was asked, less the drift, so
//     that this is "TTL - elapsed - drift". Less than Config.MinValidity is no lock: it is given back, and the error is ErrLost.
//   - A node that answers later joins the lock, if that is held then; else it is given back. What a losing attempt had won is
//     given back without waking those who wait.
//   - Renew needs the quorum, and then restores the lock, behind, where it is missing: at a node that was restarted, or was not
//     reached before. Such a node counts from the next renewal. Release reaches all nodes, and waits for a quorum of them.
//   - Renew and Release say ErrLost only where it is certain that fewer nodes than a quorum held the lock.
//   - locker.ErrNotAcquired means that others hold it at so many nodes that without them it would have been won. An outage
//     is a [*QuorumError], with a [*NodeError] for each node that failed.
//
// The mode, re-entry, renewals and hand-over are those of the nodes: Shared over nodes of rwhash; re-entry over reentrant, by the
// owner, which is the same at all nodes; strategies/watchdog and middleware/retry go around the quorum, not around the nodes.
//
// With Config.Quorum set to all nodes, a lock is held at all of them or not at all. So a team moves from one deployment to
// another: those who lock at both exclude those who lock at either.
//
// # Fencing
//
// Each node mints a token; the highest of a quorum is the lock's, and it is written back to a quorum that still holds, before the
// lock is handed over. Two quorums share a node; there the second was granted after the first had ended, so that its
// token is above what was written there: tokens strictly increase, as long as one node that both quorums share keeps its counter. The cost is
// one more round trip, to the nodes whose own token is lower, all at once. A node that comes later, or is restored, is raised
// before it counts. Nodes that mint no tokens fail a fenced request.
//
// # Handles
//
// Lock.Handle names the parts at all nodes that hold at that moment. Resume takes them over and needs the quorum, too; where it is
// missed, what was taken over is released, and the hold has ended: ErrNotHeld where it is certain that it had ended
// before, else a [*QuorumError] that matches ErrUnknownOutcome.
//
// # What is not
//
// It is assumed that a node keeps its keys over a restart (appendonly yes, appendfsync always), or stays away for the longest TTL;
// that nodes share nothing, so that a replica is no node; and that no clock is stepped, or runs faster than another, by more
// than the drift. Where this does not hold, two may hold at once, and the fencing token tells them apart.
//
// Two that try at once may share the nodes out among themselves, and neither wins; middleware/retry keeps them apart by a
// random delay ([Config].WakeJitter). Wake-ups come from one of the nodes that refused. Nodes are to be bare strategies: a retry
// or a watchdog inside of the quorum would wait and renew for one node alone.
package redlock
