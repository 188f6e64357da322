package retry

import (
	"time"

	"github.com/holdfast-go/holdfast/locker/locktrace"
)

// early is the state of the early attempts, which waiters with an owner make before their turn: one
// at a time, and another one each time the latest is not answered within earlyPatience.
type early struct {
	waiter    *waiter   // who made the latest attempt that is in flight; nil: none
	watcher   *waiter   // who was notified last that it is next
	since     time.Time // when waiter's attempt began
	notBefore time.Time // the pause after an error
}

// earlyPatience is how long the next early attempt waits for one that is not answered.
const earlyPatience = 250 * time.Millisecond

// nextEarly is the waiter that is to make the next early attempt: of the unchecked, the first that
// is not trying.
func (q *queue) nextEarly() *waiter {
	w := q.unchecked.first
	for w != nil && w.trying {
		w = w.links.behind
	}
	return w
}

// endEarly makes room for the next early attempt where that of w was under way.
func (q *queue) endEarly(w *waiter) {
	w.trying = false
	if q.early.waiter == w {
		q.early.waiter = nil
	}
}

// setUnchecked sets whether w is unchecked. A waiter that may send in its turn finds out by that.
func (w *waiter) setUnchecked(unchecked bool) {
	q := w.queue
	unchecked = unchecked && !w.leads() && (!w.shared || !q.admits(w))
	if w.unchecked == unchecked {
		return
	}
	w.unchecked = unchecked
	if unchecked {
		w.links.ahead = q.unchecked.last
		if q.unchecked.last == nil {
			q.unchecked.first = w
		} else {
			q.unchecked.last.links.behind = w
		}
		q.unchecked.last = w
		return
	}
	if w.links.ahead == nil {
		q.unchecked.first = w.links.behind
	} else {
		w.links.ahead.links.behind = w.links.behind
	}
	if w.links.behind == nil {
		q.unchecked.last = w.links.ahead
	} else {
		w.links.behind.links.ahead = w.links.ahead
	}
	w.links.ahead, w.links.behind = nil, nil
}

// reentry is an owner that acquired the lock by early attempts, and how often in a row. A release
// in this process, an error, and a refusal that contradicts it start the count again. Once proves
// nothing: a strategy that is not reentrant grants it if the lock is free.
type reentry struct {
	owner string
	times int
}

func (r reentry) proven(owner string) bool { return r.times > 1 && r.owner == owner }

func (r reentry) add(owner string) reentry {
	if r.owner != owner {
		r = reentry{owner: owner}
	}
	r.times++
	return r
}

// refusal is an attempt that was refused, as a waiter with an owner looks at it.
type refusal struct {
	by     string // the owner that made the attempt; "": none was asked for
	holder string // the owner that holds the lock; "": unknown
	after  bool   // the attempt began after the waiter entered
}

// staysUnchecked reports whether a waiter still has to find out, after an attempt of any waiter was
// refused, whether its owner holds the lock. unchecked is whether it had to before.
func staysUnchecked(unchecked bool, owner string, r refusal) bool {
	switch {
	case r.by == owner: // that was as good as its own
		return unchecked && !r.after
	case r.holder == owner:
		return true
	case r.holder == "":
		return unchecked
	default:
		return unchecked && !r.after
	}
}

// triedEarly ends an early attempt. The next one is not made before pause ends.
func (w *waiter) triedEarly(pause time.Time) {
	q := w.queue
	q.all.mu.Lock()
	defer q.all.mu.Unlock()
	q.endEarly(w)
	q.early.notBefore = pause
	q.advance(w)
}

// wakeOwner makes the waiters of an owner that acquired the lock try early.
func (q *queue) wakeOwner(owner string) {
	if owner == "" {
		return
	}
	for i := range q.lines {
		for w := q.lines[i].first; w != nil; w = w.behind {
			if w.owner == owner && !w.trying {
				w.setUnchecked(true)
				if q.reentry.proven(owner) {
					w.notify(locktrace.ByTurn)
				}
			}
		}
	}
}
