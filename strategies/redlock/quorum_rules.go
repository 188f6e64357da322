package redlock

import (
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/locker"
)

// nodeView is what the rules look at of one node of an attempt or a lock. The zero nodeView is a
// node where nothing is held and nothing is under way.
type nodeView struct {
	held      bool      // there is a node lock
	exclusive bool      // it is known to be exclusive
	named     bool      // a Handle that was handed out names it
	deadline  time.Time // of the node lock; zero: it never ends
	renewed   time.Time // when the last renewal that it granted was sent
	fence     int64     // the node's counter is at least this

	asking  bool      // an acquire is in flight
	queued  bool      // that acquire waits for earlier calls of the node; nothing was sent
	askedAt time.Time // when the last acquire was sent that is given the benefit of the doubt
	err     error     // why there is no node lock, or why its counter was not raised

	takenOver bool      // the node said that it does not hold what a Handle names
	expired   time.Time // when what a Handle names ended by the local clock: it may have been taken over before; zero: it did not
}

// quorumView is what the rules look at of an attempt or a lock at one moment. Its methods are the
// rules: they change nothing, and read no clock.
type quorumView struct {
	nodes   []nodeView
	needed  int // the quorum
	mode    locker.Mode
	fenced  bool
	fence   int64         // the lock's fencing token; 0: not known yet
	timeout time.Duration // the AttemptTimeout
	now     time.Time
}

// isLive reports whether a node lock has not expired, and is as exclusive as the lock is.
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

// never stands for the Deadline of a lease that has no end, so that it can be compared.
var never = time.Unix(1<<40, 0)

// end returns when the quorum ends: the Deadline of the quorum-th latest node that counts. Zero:
// never. ok reports whether there is a quorum.
func (v *quorumView) end() (end time.Time, ok bool) { return v.endWith(false) }

// endWith is end. If doubt is set, nodes that may soon count do so for an AttemptTimeout from when
// they were asked.
func (v *quorumView) endWith(doubt bool) (end time.Time, ok bool) {
	var buf [9]time.Time
	all := buf[:0]
	for i := range v.nodes {
		n := &v.nodes[i]
		switch {
		case v.counts(n) && n.deadline.IsZero():
			all = append(all, never)
		case v.counts(n):
			all = append(all, n.deadline)
		case doubt && v.mayCount(n):
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
// too few nodes count or may soon, or so many may have been taken over by a resume that the hold
// may be another's, wherever it was restored.
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

// isLost reports whether the quorum of a lock that is held has ended.
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

// highestLive returns the highest fencing token of the nodes whose locks are live, and how many
// nodes those are.
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
