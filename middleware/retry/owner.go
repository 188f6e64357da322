package retry

import (
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/locker/locktrace"
)

// ownerPoll is the minimum time between the latest answer and an attempt that a leader makes
// because a request with an owner has entered.
const ownerPoll = 250 * time.Millisecond

// reenters reports whether l grants a lock again to the owner that holds it.
func reenters(l locker.Locker) bool {
	r, ok := locker.As[lease.Reentrant](l)
	return ok && r.Reenters()
}

// setLatest stores o, the outcome of an attempt of w, or, if w is nil, of one outside the queue. If o
// names another owner than the outcome before, the other waiters of that owner try before their
// turn. mu is held.
func (q *queue) setLatest(o outcome, w *waiter) {
	before, owner := q.answers.latest.owner(), o.owner()
	q.answers.latest = o
	if !q.all.reenters || owner == "" || owner == before {
		return
	}
	for v := range q.waiters() {
		if v != w && v.owner == owner {
			v.mayReenter = true
			v.notify(locktrace.ByTurn)
		}
	}
}

// ownerCheck is when a waiter has the leaders try, to learn whether its owner holds the lock. An answer
// after since will do. The zero ownerCheck is none.
type ownerCheck struct{ at, since time.Time }

// planOwnerCheck returns the ownerCheck of w at its entry: its owner may have acquired the lock in another
// process since the latest answer.
func (w *waiter) planOwnerCheck(now time.Time) ownerCheck {
	q := w.queue
	q.all.mu.Lock()
	defer q.all.mu.Unlock()
	switch {
	case w.mayReenter, w.leads(), q.answers.latest.heldHere(now):
		return ownerCheck{}
	case q.answers.latest.at.IsZero(): // the first answer is on its way
		return ownerCheck{now.Add(ownerPoll), now}
	default:
		return ownerCheck{later(now, q.answers.latest.at.Add(ownerPoll)), now}
	}
}

// checkOwner makes the leaders try, unless one has been answered since.
func (w *waiter) checkOwner(since time.Time) {
	q := w.queue
	q.all.mu.Lock()
	defer q.all.mu.Unlock()
	if known := q.answers.latest; known.held == nil || !known.at.After(since) {
		q.wakeLeaders(locktrace.ByBackoff)
	}
}

// ownerQueued reports whether another request of w's owner is in the queue. It may have acquired the
// lock, so that w waits for its own owner. mu is held.
func (w *waiter) ownerQueued() bool {
	if w.owner == "" || !w.queue.all.reenters {
		return false
	}
	for v := range w.queue.waiters() {
		if v != w && v.owner == w.owner {
			return true
		}
	}
	return false
}

// ownerHolds reports whether o says that the request's own owner holds the lock. That is no refusal
// of it if the strategy is reentrant.
func (r request) ownerHolds(o outcome) bool { return r.owner != "" && r.owner == o.owner() }

// mayBeHolder reports whether an unanswered attempt of the waiter may be the holder that o is about,
// or hold the lock beside it: o names the waiter's owner, or nobody.
func (v view) mayBeHolder(o outcome) bool {
	switch {
	case o.held == nil:
		return false
	case o.held.Owner != "":
		return v.owner == o.held.Owner && (v.reenters || !o.assumed)
	default:
		return o.here == nil && !o.assumed
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
