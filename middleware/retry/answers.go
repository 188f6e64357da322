package retry

import (
	"time"

	"github.com/holdfast-go/holdfast/locker"
)

// timing records how long attempts take. The first one may have dialed, so it alone is not used.
type timing struct {
	attempts int
	fastest  time.Duration
}

func (t timing) add(took time.Duration) timing {
	if t.attempts == 0 || took < t.fastest {
		t.fastest = took
	}
	t.attempts++
	return t
}

// tooLate reports whether an attempt that begins at the time at, and takes times as long as the
// fastest, would end after end. The zero end is never reached.
func (t timing) tooLate(at, end time.Time, times int) bool {
	return !end.IsZero() && t.attempts > 1 && at.Add(time.Duration(times)*t.fastest).After(end)
}

// silence returns for how long attempts have gone unanswered since the time since, or zero if that
// is too short to be an outage. The zero since means that none is unanswered.
func (t timing) silence(since, now time.Time) time.Duration {
	silence := now.Sub(since)
	if since.IsZero() || silence < max(time.Second, 2*t.fastest) {
		return 0
	}
	return silence
}

// reentry is an owner that acquired the lock by early attempts, and how often since the last
// release in this process. Once proves nothing: a strategy that is not reentrant grants it if the
// lock is free.
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

// owes reports whether a waiter still has to find out, after an attempt of any waiter was refused,
// whether its owner holds the lock. owed is whether it had to before.
func owes(owed bool, owner string, r refusal) bool {
	switch {
	case r.by == owner: // that was as good as its own
		return owed && !r.after
	case r.holder == owner:
		return true
	case r.holder == "":
		return owed
	default:
		return owed && !r.after
	}
}

// record stores the outcome of w's attempt, which took the time took, for all waiters.
func (w *waiter) record(o outcome, took time.Duration) {
	q := w.queue
	q.all.mu.Lock()
	defer q.all.mu.Unlock()
	q.known, q.unanswered = o, time.Time{}
	q.closed = q.closed || w.shared
	if o.held == nil {
		q.reentry = reentry{} // one at a time again, and not before the pause ends
	} else {
		q.timing = q.timing.add(took)
		q.ordered = q.ordered || o.held.Ordered
		q.early.notBefore = time.Time{} // the server answers
		if q.reentry.owner == w.owner || q.reentry.owner != o.held.Owner {
			q.reentry = reentry{}
		}
		for i := range q.lines {
			for v := q.lines[i].first; v != nil && q.owned > 0; v = v.behind {
				if v.owner != "" {
					v.setOwes(owes(v.owes, v.owner, refusal{by: w.owner, holder: o.held.Owner, after: v.number <= w.began}))
				}
			}
		}
	}
	q.advance(w)
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

// acquired gives up w's place: it has the lock now.
func (w *waiter) acquired(lock *locker.Lock, note string) {
	q := w.queue
	q.all.mu.Lock()
	if q.size > 1 {
		q.granted(lock, note, w.shared)
	}
	if w.trying {
		q.reentry = q.reentry.add(w.owner)
		q.invite(w.owner)
	}
	sub := q.remove(w)
	q.all.mu.Unlock()
	closeSub(sub)
}

// acquiredBeside is for a lock that was acquired without queueing.
func (qs *queues) acquiredBeside(lock *locker.Lock, note string) {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	if q := qs.byName[lock.Name()]; q != nil {
		q.granted(lock, note, lock.Mode() == locker.Shared)
		q.invite(lock.Owner())
		q.advance(nil)
	}
}

// granted keeps that a request of this process has the lock.
func (q *queue) granted(lock *locker.Lock, note string, shared bool) {
	q.unanswered = time.Time{}
	if shared {
		q.known = outcome{}
		q.open()
		return
	}
	q.known = outcome{held: &locker.ContentionError{Name: q.name, Owner: lock.Owner(), Note: note}, here: lock, at: time.Now()}
}

// invite makes the waiters of an owner that acquired the lock try early.
func (q *queue) invite(owner string) {
	if owner == "" {
		return
	}
	for i := range q.lines {
		for w := q.lines[i].first; w != nil; w = w.behind {
			if w.owner == owner && !w.trying {
				w.setOwes(true)
				if q.reentry.proven(owner) {
					w.tell(locker.ByTurn)
				}
			}
		}
	}
}

// released tells the leaders of name's queue, if there is one, that the lock may be free.
func (qs *queues) released(name string) {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	q := qs.byName[name]
	if q == nil {
		return
	}
	q.reentry = reentry{}
	if q.known.here != nil {
		q.known.here, q.known.at = nil, time.Now() // until now
	}
	q.wakeLeaders(locker.ByRelease, nil)
}

// howLong returns how long attempts take.
func (w *waiter) howLong() timing {
	w.queue.all.mu.Lock()
	defer w.queue.all.mu.Unlock()
	return w.queue.timing
}

// latest returns the later of own, which is w's own outcome, and the one that was recorded last. If
// there is neither and others are ahead, or were all the time, the lock counts as held by them. silence is how long the
// queue has waited for an answer, if that outcome is too old for it: zero if it is not.
func (w *waiter) latest(own outcome, now time.Time) (o outcome, silence time.Duration) {
	q := w.queue
	q.all.mu.Lock()
	defer q.all.mu.Unlock()
	o = own
	switch {
	case q.known.at.After(own.at):
		o = q.known
	case own.at.IsZero() && w.queued > 0 && !w.leads() && (w.left || !w.shared || !q.admits(w)):
		o = outcome{held: &locker.ContentionError{Name: q.name}, assumed: true, at: now}
	}
	if o.err != nil || o.heldHere(now) {
		return o, 0
	}
	return o, q.timing.silence(q.unanswered, now)
}
