package redlock

import (
	"errors"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/locker"
)

// nodeView is one node of a quorumView. The zero nodeView is a node with nothing held or under way.
type nodeView struct {
	held      bool      // there is a node lock
	exclusive bool      // it is known to be exclusive
	named     bool      // a Handle given out names it
	deadline  time.Time // of the node lock; zero: it never ends
	renewed   time.Time // when the last granted renewal was sent
	fence     int64     // the node's counter is at least this

	asking  bool      // an acquire is in flight
	queued  bool      // the acquire waits for earlier calls of the node; nothing was sent
	askedAt time.Time // begin of the acquire, if the node may count before the answer; zero: it may not
	err     error     // why there is no node lock, or why its counter was not raised

	takenOver bool // the node answered that it does not hold the node lock named by a Handle
	// when a node lock named by a Handle expired locally, maybe taken over before; zero: none
	expired time.Time
}

// quorumView is an attempt or a lock at one moment. Its methods are the rules: they change nothing,
// and read no clock.
type quorumView struct {
	nodes   []nodeView
	needed  int // the quorum
	mode    locker.Mode
	fenced  bool
	fence   int64         // the lock's fencing token; 0: not known yet
	timeout time.Duration // the AttemptTimeout
	now     time.Time
}

// isLive reports whether a node lock has not expired and, for an exclusive lock, is exclusive.
func (v *quorumView) isLive(n *nodeView) bool {
	if !n.held || v.mode == locker.Exclusive && !n.exclusive {
		return false
	}
	return n.deadline.IsZero() || remaining(n.deadline, v.now) > 0
}

// counts reports whether a node counts toward the quorum: its lock is live, and its counter cannot
// fall behind the lock's fencing token.
func (v *quorumView) counts(n *nodeView) bool {
	return v.isLive(n) && (!v.fenced || v.fence > 0 && n.fence >= v.fence)
}

// mayCount reports whether a node that does not count may soon.
func (v *quorumView) mayCount(n *nodeView) bool {
	return n.asking || n.err == nil && v.isLive(n) && !v.counts(n)
}

// counting returns how many nodes count toward the quorum, and how many others soon may.
func (v *quorumView) counting() (now, soon int) {
	for i := range v.nodes {
		n := &v.nodes[i]
		switch {
		case v.counts(n):
			now++
		case v.mayCount(n):
			soon++
		}
	}
	return now, soon
}

// never stands for the Deadline of a lease without end, for comparisons.
var never = time.Unix(1<<40, 0)

// end returns the end of the quorum: the quorum-th latest Deadline of the nodes that count. Zero:
// never. ok reports whether there is a quorum.
func (v *quorumView) end() (end time.Time, ok bool) { return v.endWith(false) }

// endWith is end. If early is set, a node with an acquire in flight counts from askedAt on, for an
// AttemptTimeout.
func (v *quorumView) endWith(early bool) (end time.Time, ok bool) {
	var buf [9]time.Time
	all := buf[:0]
	for i := range v.nodes {
		n := &v.nodes[i]
		switch {
		case v.counts(n) && n.deadline.IsZero():
			all = append(all, never)
		case v.counts(n):
			all = append(all, n.deadline)
		case early && v.mayCount(n):
			all = append(all, n.askedAt.Add(v.timeout))
		}
	}
	if len(all) < v.needed {
		return time.Time{}, false
	}
	slices.SortFunc(all, func(a, b time.Time) int { return b.Compare(a) })
	if end = all[v.needed-1]; end.Equal(never) {
		end = time.Time{}
	}
	return end, true
}

// lossTime returns when the lock is lost unless something changes. ok is false if it is lost now:
// too few nodes count or may soon, or a resume may have taken over so many that the hold is
// another's, even at restored nodes.
func (v *quorumView) lossTime() (end time.Time, ok bool) {
	taken := 0
	for i := range v.nodes {
		n := &v.nodes[i]
		if n.takenOver || !n.expired.IsZero() {
			taken++
		}
	}
	if taken >= v.needed {
		return time.Time{}, false
	}
	return v.endWith(true)
}

// isLost reports whether the quorum of a held lock has ended.
func (v *quorumView) isLost() bool {
	end, ok := v.lossTime()
	return !ok || !end.IsZero() && remaining(end, v.now) <= 0
}

// hasQuorum reports whether a quorum of nodes counts.
func (v *quorumView) hasQuorum() bool {
	counting, _ := v.counting()
	return counting >= v.needed
}

// lasts reports whether there is a quorum until deadline. Zero: for ever.
func (v *quorumView) lasts(deadline time.Time) bool {
	end, ok := v.end()
	return ok && reaches(end, deadline)
}

// highestLive returns the highest fencing token of the live node locks, and their number.
func (v *quorumView) highestLive() (fence int64, live int) {
	for i := range v.nodes {
		n := &v.nodes[i]
		if v.isLive(n) {
			live++
			fence = max(fence, n.fence)
		}
	}
	return fence, live
}

// highestExclusive returns the highest fencing token of the exclusive node locks.
func (v *quorumView) highestExclusive() (fence int64) {
	for i := range v.nodes {
		n := &v.nodes[i]
		if n.held && n.exclusive {
			fence = max(fence, n.fence)
		}
	}
	return fence
}

// reaches reports whether a lease that ends at end lasts until deadline. Zero: for ever.
func reaches(end, deadline time.Time) bool {
	return end.IsZero() || !deadline.IsZero() && !end.Before(deadline)
}

// remaining returns the time until d, by the monotonic or the wall clock, whichever says less.
func remaining(d, now time.Time) time.Duration {
	return min(d.Sub(now), d.Round(0).Sub(now.Round(0)))
}

// renewedSince returns how many nodes that count have granted a renewal sent at began or later.
// Answers to an earlier renewal do not count for this one.
func (v *quorumView) renewedSince(began time.Time) (n int) {
	for i := range v.nodes {
		node := &v.nodes[i]
		if v.counts(node) && !node.renewed.Before(began) {
			n++
		}
	}
	return n
}

// noneTookOver reports whether a successful renewal begun at began proves that no other client
// resumed the hold: fewer than a quorum of the nodes may have been taken over.
func (v *quorumView) noneTookOver(began time.Time) bool {
	doubtful := 0
	for i := range v.nodes {
		n := &v.nodes[i]
		if n.takenOver || !n.expired.IsZero() || n.held && n.named && n.renewed.Before(began) {
			doubtful++
		}
	}
	return doubtful < v.needed
}

// movedDeadline returns the Deadline after a renewal whose quorum ends at end. It never goes back,
// and is not past aim: a node is asked for more than is promised. Zero times are never.
func movedDeadline(deadline, end, aim time.Time) time.Time {
	switch {
	case deadline.IsZero(), end.IsZero():
		return time.Time{}
	case end.After(aim):
		end = aim
	}
	if end.After(deadline) {
		return end
	}
	return deadline
}

// leaseToAsk returns the TTL to ask a node for: at least ttl, and long enough to reach deadline
// despite the node's allowance for drift. It goes by the monotonic clock: by a wall clock set
// forward, the TTL would be too short. A zero deadline is never.
func leaseToAsk(ttl time.Duration, deadline, now time.Time) time.Duration {
	if deadline.IsZero() {
		return ttl
	}
	const allowance = 10 * time.Millisecond
	need := deadline.Sub(now)
	need += need/64 + allowance
	return min(max(ttl, need), locker.MaxTTL)
}

// minGrace is the minimum wait for missing answers: a node in another zone, or one yet to be
// connected, takes that much longer than the first.
const minGrace = 20 * time.Millisecond

// asLongAgain returns how much longer to wait for missing answers after took: as long again, but
// neither so short that answers on their way come too late, nor longer than timeout.
func asLongAgain(took, timeout time.Duration) time.Duration {
	return min(max(took, minGrace), timeout)
}

// outcome returns a node's answer to an attempt so far: nil for its lock, errUnanswered for none,
// or its error.
func (v *quorumView) outcome(n *nodeView) error {
	switch {
	case n.queued:
		return errStalled
	case n.asking:
		return errUnanswered
	case !n.held || n.err != nil:
		return n.err
	case !v.isLive(n):
		return errEnded
	case v.fence > 0 && !v.counts(n):
		return errUnanswered // its counter is being raised
	}
	return nil
}

// refuses reports whether a node's error is an answer and no failure: another holds the lock or,
// for a resume, the node has nothing to hand over. A node that returns ErrLost had taken the hold
// over, and lost it.
func refuses(err error, resume bool) bool {
	return errors.Is(err, locker.ErrNotAcquired) ||
		resume && errors.Is(err, locker.ErrNotHeld) && !errors.Is(err, locker.ErrLost)
}

// sameServer finds two nodes at one server: node refuses and names the attempt's owner as the
// holder, although the owner was made for this attempt. Equal addresses would prove nothing:
// clients behind a dialer or a tunnel may all report the same one. other is -1 if the granting node
// has yet to answer.
func sameServer(nodes []nodeView, owner string) (node, other int, found bool) {
	for i := range nodes {
		held, refused := errors.AsType[*locker.ContentionError](nodes[i].err)
		if !refused || held.Owner != owner {
			continue
		}
		for j := range nodes {
			if j != i && nodes[j].held {
				return i, j, true
			}
		}
		return i, -1, true
	}
	return 0, 0, false
}
