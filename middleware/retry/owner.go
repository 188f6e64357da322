package retry

import (
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/locker/locktrace"
)

// reenters reports whether l grants a lock again to the owner that holds it.
func reenters(l locker.Locker) bool {
	r, ok := locker.As[lease.Reentrant](l)
	return ok && r.Reenters()
}

// learn stores o for all waiters, by an attempt of w or, if that is nil, by one outside the queue. If o
// names an owner that was not known to hold the lock, the others of that owner try before their turn.
// mu is held.
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

// wakeLeaders makes the leaders try, for w, whose early attempt failed with an error: their answer says
// again whether its owner holds the lock.
func (w *waiter) wakeLeaders() {
	w.queue.all.mu.Lock()
	defer w.queue.all.mu.Unlock()
	w.queue.wakeLeaders(locktrace.ByBackoff)
}

// ownedBy reports whether o says that w's own owner holds the lock. That is no refusal of w if the
// strategy is reentrant.
func (w *waiter) ownedBy(o outcome) bool { return w.owner != "" && w.owner == o.owner() }

// mayBeHolder reports whether an unanswered attempt of w may be the holder that o is about, or hold the
// lock beside it: o names w's owner, or nobody.
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

// behindItself reports whether w may wait for its own owner, though nobody has said so: another request
// of that owner is in the queue, and may have acquired the lock.
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
