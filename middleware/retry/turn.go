package retry

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/locker/locktrace"
)

// turnLength is the length of a turn of this process, from the acquire that begins it. A release
// within a turn wakes the next waiter of this process and no other process, which saves the round
// trips that a change of process takes. It bounds how long other processes wait for that.
const turnLength = 3 * time.Millisecond

// beginTurn begins a turn at an acquire of this process, unless one lasts or a release within the
// last one left the lock to this process. mu is held.
func (q *queue) beginTurn(now time.Time) {
	if q.atServer && !q.leftHere && !now.Before(q.turn) {
		q.turn = now.Add(turnLength)
	}
	q.leftHere = false
}

// inTurn reports whether a waiter that becomes the leader need not send an attempt: the lock is
// held by this process in its turn, and the release wakes the leader. mu is held.
func (q *queue) inTurn(leader *waiter, now time.Time) bool {
	return leader.mayInherit() && q.known.here != nil && now.Before(q.turn)
}

// nextHere returns this process's ID if the release of l leaves the lock to a waiter of this
// process, or "" if it wakes the first waiter at the server.
func (l *wakingLease) nextHere() string {
	qs := l.queues
	qs.mu.Lock()
	defer qs.mu.Unlock()
	q := qs.byName[l.lock.Name()]
	if q == nil {
		return ""
	}
	switch now := time.Now(); {
	case q.ordered, !now.Before(q.turn), now.Before(q.notBefore), l.tenure != nil && l.tenure.overtime:
		return ""
	case q.line(false).leader == nil:
		return ""
	}
	return qs.id
}

// leaveHere records that the release of l, just now, woke no other process. mu is held.
func (qs *queues) leaveHere(l *wakingLease) {
	if q := qs.byName[l.lock.Name()]; q != nil {
		q.unwoken, q.leftHere = l, true
		return
	}
	go l.wakeOthers()
}

// wakeOthers wakes the first waiter at the server after a release that left the lock to this
// process, if no waiter of this process tries any more. It sends the release again: that of a free
// lock wakes the first waiter.
func (l *wakingLease) wakeOthers() {
	_, _ = l.Lease.Do(context.Background(), lease.Op{Kind: lease.OpRelease})
}

// waiting returns the lease.Waiting for an attempt of w. since is when its acquire began.
func (w *waiter) waiting(since, until time.Time) lease.Waiting {
	q := w.queue
	q.all.mu.Lock()
	defer q.all.mu.Unlock()
	return lease.Waiting{ID: q.all.id, Since: since, Until: until, Subscribed: w.subscription().sub != nil}
}

// listens reports whether w's queue has a subscription for its leader.
func (w *waiter) listens() bool {
	w.queue.all.mu.Lock()
	defer w.queue.all.mu.Unlock()
	return w.subscription().sub != nil
}

// endTurn wakes the leaders at the end of a turn in which no release did. mu is held.
func (q *queue) endTurn() { q.wakeLeaders(locktrace.ByTurn) }
