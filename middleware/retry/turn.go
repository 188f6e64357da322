package retry

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/locker/locktrace"
)

const (
	// shortTurn and longTurn bound the length of a turn of this process, from the acquire that begins
	// it. A release within a turn wakes the next waiter of this process and no other process, which
	// saves the round trips that a change of process takes. In between, a turn lasts until those have
	// had the lock who waited when it began.
	shortTurn = time.Millisecond
	longTurn  = 3 * time.Millisecond
	// turnSlack is how much longer the leader waits for a release before it takes a place at the
	// server.
	turnSlack = time.Millisecond
	// minYield is the minimum time for which the waiters of this process make no attempt while
	// another process has its turn.
	minYield = time.Millisecond
	// yieldEvery is how often a tenure that HandOver ended yields although the queue at the server is
	// empty: to other libraries, which poll.
	yieldEvery = 100 * time.Millisecond
)

// turn is a turn of this process. The zero turn is over.
type turn struct {
	began time.Time
	last  int // the number of the latest waiter that waited when it began
}

// serves reports whether a release at now leaves the lock to w.
func (t turn) serves(w *waiter, now time.Time) bool {
	return now.Before(t.began.Add(shortTurn)) || now.Before(t.began.Add(longTurn)) && w.number <= t.last
}

// slackEnd is until when the leader counts on a release.
func (t turn) slackEnd() time.Time { return t.began.Add(longTurn + turnSlack) }

// beginTurn begins a turn at an acquire of this process, unless a release within the last one left
// the lock to this process. mu is held.
func (q *queue) beginTurn(now time.Time) {
	if q.atServer && !q.leftHere {
		q.turn = turn{now, q.entered}
	}
	q.leftHere, q.free = false, false
}

// inTurn reports whether a waiter that becomes the leader need not send an attempt: the lock is
// held by this process in its turn, and the release wakes the leader. In a strict order it needs a
// place. mu is held.
func (q *queue) inTurn(leader *waiter, now time.Time) bool {
	return leader.mayInherit() && q.known.here != nil && now.Before(q.turn.slackEnd()) && (q.placed || !q.fair)
}

// next returns who acquires the lock after the release of l: own is this process's ID if its leader
// tries at once.
func (l *wakingLease) next() (own string, next lease.Next) {
	qs := l.queues
	qs.mu.Lock()
	defer qs.mu.Unlock()
	q, now := qs.byName[l.lock.Name()], time.Now()
	if q == nil {
		if l.passedOn {
			return qs.id, lease.NextOther // who has the place gave up
		}
		return "", lease.NextFirst
	}
	switch leader := q.line(false).leader; {
	case leader == nil, q.ordered, now.Before(q.notBefore), l.tenure != nil && l.tenure.overtime:
		return "", lease.NextFirst
	case !q.fair && q.turn.serves(leader, now):
		return qs.id, lease.NextOwn
	}
	return qs.id, lease.NextFirst
}

// countOnHeir records that the release of l counts on a waiter of this process. If there is none any
// more, it wakes the first waiter at the server. mu is held.
func (l *wakingLease) countOnHeir() {
	if q := l.queues.byName[l.lock.Name()]; q != nil {
		q.unwoken = l
		return
	}
	go l.wakeOthers()
}

// wakeOthers wakes the first waiter at the server after a release that counted on a waiter of this
// process, if none tries any more. It sends the release again: that of a free lock wakes the first
// waiter.
func (l *wakingLease) wakeOthers() {
	_, _ = l.Lease.Do(context.Background(), lease.Op{Kind: lease.OpRelease, Waiter: l.queues.id, Next: lease.NextOther})
}

// yieldAfter makes the leaders wait if other processes go first after a release of t, which may be
// nil. mu is held.
func (q *queue) yieldAfter(t *tenure, others lease.Others, now time.Time) {
	switch overtime := t != nil && t.overtime; {
	case overtime && (others != lease.OthersNone || now.Sub(q.yielded) >= yieldEvery):
		q.yielded = now
		q.notBefore = now.Add(max(minYield, 4*q.timing.fastest)) // as long as a few attempts take
	case others == lease.OthersWoken && q.atServer && !q.fair:
		q.notBefore = now.Add(minYield)
	}
}

// waiting returns the lease.Waiting for an attempt of w, whose acquire ends at until.
func (w *waiter) waiting(until time.Time) lease.Waiting {
	q := w.queue
	q.all.mu.Lock()
	defer q.all.mu.Unlock()
	waiting := lease.Waiting{ID: q.all.id, Since: w.since, Until: until, Subscribed: w.subscription().sub != nil, Free: q.free && !q.placed}
	if next := w.behind; next != nil && next.mayInherit() {
		waiting.Next = next.since
	}
	q.placed, w.placed, w.passesOn = true, true, !waiting.Next.IsZero()
	return waiting
}

// listens reports whether w's queue has a subscription for its leader.
func (w *waiter) listens() bool {
	w.queue.all.mu.Lock()
	defer w.queue.all.mu.Unlock()
	return w.subscription().sub != nil
}

// endTurn wakes the leaders at the end of a turn in which no release did. mu is held.
func (q *queue) endTurn() { q.wakeLeaders(locktrace.ByTurn) }
