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

// learn stores o, the outcome of an attempt of w, or, if w is nil, of one outside the queue. If o
// names another owner than the outcome before, the other waiters of that owner try before their
// turn. mu is held.
func (q *queue) learn(o outcome, w *waiter) {
	before := q.known.owner()
	q.known = o
	owner := o.owner()
	if !q.all.reenters || owner == "" || owner == before {
		return
	}
	for i := range q.lines {
		for v := q.lines[i].first; v != nil; v = v.behind {
			if v != w && v.owner == owner {
				v.mayReenter = true
				v.notify(locktrace.ByTurn)
			}
		}
	}
}

// question is when a waiter has the leaders try, to learn whether its owner holds the lock. An answer
// after since will do. The zero question is none.
type question struct{ at, since time.Time }

// question returns the question of w at its entry: its owner may have acquired the lock in another
// process since the latest answer.
func (w *waiter) question(now time.Time) question {
	q := w.queue
	q.all.mu.Lock()
	defer q.all.mu.Unlock()
	switch {
	case w.mayReenter, w.leads(), q.known.heldHere(now):
		return question{}
	case q.known.at.IsZero(): // the first answer is on its way
		return question{now.Add(ownerPoll), now}
	default:
		return question{latest(now, q.known.at.Add(ownerPoll)), now}
	}
}

// ask makes the leaders try, unless one has been answered since.
func (w *waiter) ask(since time.Time) {
	q := w.queue
	q.all.mu.Lock()
	defer q.all.mu.Unlock()
	if q.known.held == nil || !q.known.at.After(since) {
		q.wakeLeaders(locktrace.ByBackoff)
	}
}

// ownedBy reports whether o says that w's own owner holds the lock. That is no refusal of w if the
// strategy is reentrant.
func (w *waiter) ownedBy(o outcome) bool { return w.owner != "" && w.owner == o.owner() }

// mayBeHolder reports whether an unanswered attempt of w may be the holder that o is about, or hold
// the lock beside it: o names w's owner, or nobody.
func (w *waiter) mayBeHolder(o outcome) bool {
	switch {
	case o.held == nil:
		return false
	case o.held.Owner != "":
		return w.owner == o.held.Owner && (w.queue.all.reenters || !o.assumed)
	default:
		return o.here == nil && !o.assumed
	}
}

// behindItself reports whether w may be waiting for its own owner, though no answer named that:
// another request of the owner is in the queue, and may have acquired the lock.
func (w *waiter) behindItself() bool {
	if w.owner == "" || !w.queue.all.reenters {
		return false
	}
	for i := range w.queue.lines {
		for v := w.queue.lines[i].first; v != nil; v = v.behind {
			if v != w && v.owner == w.owner {
				return true
			}
		}
	}
	return false
}
