package redlock

import (
	"time"

	"github.com/holdfast-go/holdfast/locker"
)

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

// noneTookOver reports whether a renewal that began at began, and succeeded, proves that no other
// client resumed the hold: fewer than a quorum of the nodes may have been taken over.
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

// leaseToAsk returns the TTL to ask a node for, so that it holds for ttl, and until deadline by its
// own reckoning: that is sooner by the drift that it allows for. It goes by the monotonic clock: by
// a wall clock that was set forward, a node would be asked for less than it takes to reach the
// deadline. A zero deadline is never.
func leaseToAsk(ttl time.Duration, deadline, now time.Time) time.Duration {
	if deadline.IsZero() {
		return ttl
	}
	const allowance = 10 * time.Millisecond
	need := deadline.Sub(now)
	need += need/64 + allowance
	return min(max(ttl, need), locker.MaxTTL)
}
