package retry

import (
	"cmp"
	"time"

	"github.com/holdfast-go/holdfast/locker/locktrace"
)

// ownerPoll is the minimum time between the latest answer and an attempt made for an ownerCheck.
const ownerPoll = 250 * time.Millisecond

// setLatest stores o, the outcome of an attempt of w, or of one outside the queue if w is nil. If o
// names a new owner, the other waiters of this owner try before their turn. mu is held.
func (q *queue) setLatest(o outcome, w *waiter) {
	before, owner := q.answers.latest.owner(), o.owner()
	q.answers.latest = o
	if owner == before || !q.hasOther(owner, w) {
		return
	}
	for v := range q.waiters() {
		if v != w && v.owner == owner {
			v.mayReenter = true
			v.notify(locktrace.ByTurn)
		}
	}
}

// ownerCheck is a plan to learn whether a waiter's owner holds the lock. At the time at the leaders
// try, unless the lock was found held after since. The zero ownerCheck is none.
type ownerCheck struct{ at, since time.Time }

// planOwnerCheck returns the ownerCheck of w at its entry: w's owner may have acquired the lock in
// another process since the latest answer.
func (w *waiter) planOwnerCheck(now time.Time) ownerCheck {
	q := w.queue
	q.all.mu.Lock()
	defer q.all.mu.Unlock()
	latest := q.answers.latest
	if w.mayReenter || w.leads() || latest.heldHere(now) {
		return ownerCheck{}
	}
	age := time.Duration(0) // without an answer: the first one is on its way
	if !latest.at.IsZero() {
		age = now.Sub(latest.at)
	}
	return ownerCheck{now.Add(max(ownerPoll-age, 0)), now}
}

// checkOwner wakes the leaders, unless the lock was found held after since. An error is no such answer.
func (w *waiter) checkOwner(since time.Time) {
	q := w.queue
	q.all.mu.Lock()
	defer q.all.mu.Unlock()
	if known := q.answers.latest; known.held == nil || !known.at.After(since) {
		q.wakeLeaders(locktrace.ByBackoff)
	}
}

// countOwner adds n to the number of waiters of w's owner, once several wait. mu is held.
func (q *queue) countOwner(w *waiter, n int) {
	switch {
	case !q.all.reenters:
	case q.owners != nil:
		if q.owners[w.owner] += n; q.owners[w.owner] == 0 {
			delete(q.owners, w.owner)
		}
	case q.size > 1:
		q.owners = map[string]int{}
		for v := range q.waiters() {
			q.owners[v.owner]++
		}
	}
}

// hasOther reports whether a request of owner other than w is in the queue of a reentrant strategy. w may
// be nil. mu is held.
func (q *queue) hasOther(owner string, w *waiter) bool {
	if owner == "" || !q.all.reenters {
		return false
	}
	if q.owners == nil {
		only := cmp.Or(q.lines[0].first, q.lines[1].first)
		return only != nil && only != w && only.owner == owner
	}
	if w != nil && w.queued() && w.owner == owner {
		return q.owners[owner] > 1
	}
	return q.owners[owner] > 0
}

// ownerHolds reports whether o names the request's own owner as the holder. If the strategy is
// reentrant, o does not refuse the request.
func (r request) ownerHolds(o outcome) bool { return r.owner != "" && r.owner == o.owner() }

// mayBeHolder reports whether an unanswered attempt of the waiter may be the holder in o, or hold the
// lock beside it: o names the waiter's owner, or nobody.
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
