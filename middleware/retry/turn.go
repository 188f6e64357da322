package retry

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/locker/locktrace"
)

// turnLength is for how long after an acquire a release leaves the lock to the next waiter of this
// process, and wakes no other process. It bounds what others wait for, and makes up for the round
// trips that a change of process takes.
const turnLength = 3 * time.Millisecond

// beginTurn begins a turn of this process, which acquired the lock, unless a release within the last
// turn left the lock to it. mu is held.
func (q *queue) beginTurn(now time.Time) {
	if q.atServer && !q.left && !now.Before(q.turn) {
		q.turn = now.Add(turnLength)
	}
	q.left = false
}

// inTurn reports whether a waiter that becomes the leader need not ask: a request of this process
// holds the lock, and wakes it. mu is held.
func (q *queue) inTurn(leader *waiter, now time.Time) bool {
	return leader.mayInherit() && q.known.here != nil && now.Before(q.turn)
}

// nextHere returns the ID of this process's place for the release of a lock, if its leader is to try at once;
// "" if the release is to wake the first waiter at the server.
func (l *wakingLease) nextHere() string {
	qs := l.queues
	qs.mu.Lock()
	defer qs.mu.Unlock()
	q, now := qs.byName[l.lock.Name()], time.Now()
	switch {
	case q == nil, q.ordered, !now.Before(q.turn), now.Before(q.notBefore), l.tenure != nil && l.tenure.overtime:
		return ""
	case q.line(false).leader == nil:
		return ""
	}
	return qs.id
}

// kept records that the release of l, just now, woke no other process. mu is held.
func (qs *queues) kept(l *wakingLease) {
	if q := qs.byName[l.lock.Name()]; q != nil {
		q.unwoken, q.left = l, true
		return
	}
	go l.wakeOthers()
}

// wakeOthers wakes the first waiter at the server, after a release that did not: the waiter of this
// process that it left the lock to has given up. A release of a lock that is free does that.
func (l *wakingLease) wakeOthers() {
	_, _ = l.Lease.Do(context.Background(), lease.Op{Kind: lease.OpRelease})
}

// waiting describes w, whose acquire began at since, for an attempt.
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
