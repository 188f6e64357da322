package retry

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/locker/locktrace"
)

const (
	// shortTurn and longTurn bound the length of a turn of this process, from the acquire that
	// begins it. A release within a turn wakes the next waiter of this process and no other
	// process, which saves the round trips that a change of process takes. After shortTurn, a turn
	// ends as soon as all waiters that waited when it began have had the lock.
	shortTurn = time.Millisecond
	longTurn  = 3 * time.Millisecond
	// turnSlack is how long after longTurn the leader still waits for a release of this process
	// before it takes a place at the server.
	turnSlack = time.Millisecond
	// minYield is the minimum time for which the waiters of this process make no attempt while
	// another process has its turn.
	minYield = time.Millisecond
)

// vacancy is what a release of this process says of the lock until the next attempt is answered.
type vacancy int

const (
	unclear  vacancy = iota // it may be anybody's
	vacant                  // nobody waits at the server
	leftHere                // nobody else was woken: it is left to this process
)

// turn is a turn of this process. The zero turn is over.
type turn struct {
	began time.Time
	last  int // the number of the last waiter that was in the queue when the turn began
}

// serves reports whether a release at now leaves the lock to w, a waiter of this process.
func (t turn) serves(w *waiter, now time.Time) bool {
	return now.Before(t.began.Add(shortTurn)) || now.Before(t.began.Add(longTurn)) && w.number <= t.last
}

// slackEnd returns the time until which the leader relies on a release of this process.
func (t turn) slackEnd() time.Time { return t.began.Add(longTurn + turnSlack) }

// beginTurn begins a turn at an acquire of this process, unless a release within the previous turn
// left the lock to this process: that turn goes on. So it does after an early attempt, which may be
// a re-entry. mu is held.
func (q *queue) beginTurn(now time.Time, early bool) {
	if q.all.strategy.queues && q.vacancy != leftHere && !early {
		q.turn = turn{now, q.entered}
	}
	q.vacancy = unclear
}

// quietUntil returns the time until which leader sends no attempt unless a release of this process wakes
// it: while others have their chance, or while this process holds the lock in its turn. If the order is
// strict, this process must have a place at the server, too. mu is held.
func (q *queue) quietUntil(leader *waiter) time.Time {
	if leader.waitsItsTurn() && q.known.here != nil && (q.placed || !q.all.strategy.fair) && !q.all.closing {
		return latest(q.notBefore, q.turn.slackEnd())
	}
	return q.notBefore
}

// next returns who is to try after the release of l, and own, the ID of this process if it has a
// leader that tries at once, or a place to remove (lease.NextOther). If the release leaves the lock
// to the leader, next wakes it and returns it as woken. keeps says that the name stays taken.
func (l *wakingLease) next(keeps bool) (own string, next lease.Next, woken *waiter) {
	qs := l.queues
	qs.mu.Lock()
	defer qs.mu.Unlock()
	q, now := qs.byName[l.lock.Name()], time.Now()
	if q == nil {
		if qs.takePlace(l.lock.Name()) {
			return qs.id, lease.NextOther, nil
		}
		return "", lease.NextFirst, nil
	}
	switch leader := q.line(false).leader; {
	case keeps, leader == nil, !qs.strategy.queues, now.Before(q.notBefore):
		return "", lease.NextFirst, nil
	case !qs.strategy.fair && q.turn.serves(leader, now):
		l.wakeBeforeRelease(leader, now)
		return qs.id, lease.NextOwn, leader
	}
	return qs.id, lease.NextFirst, nil
}

// wakeBeforeRelease wakes the leader before the release is sent that leaves the lock to it: its
// attempt then follows the release without waiting for the answer. mu is held.
func (l *wakingLease) wakeBeforeRelease(leader *waiter, now time.Time) {
	q := leader.queue
	q.freed(l.lock, now, leftHere)
	q.next = leader
	leader.overlaps = true // also of an attempt that is in flight
	leader.notify(locktrace.ByRelease)
}

// releaseAnswered is called when the release of l, which woke w when it was sent, ended with err.
// It wakes w again if that has not acquired the lock yet: its attempt may have come before the
// release. It returns false if that is not enough, because w has given up or the release failed. mu
// is held.
func (l *wakingLease) releaseAnswered(w *waiter, err error) bool {
	q := w.queue
	if q.next == w {
		q.next = nil
	}
	switch {
	case w.won:
		return true
	case w.left, err != nil:
		return false
	case w.asking:
		w.owedWake = l
	default:
		q.owedWake = l
	}
	w.notify(locktrace.ByRelease)
	return true
}

// relyOnWaiter records that the release of l relies on a waiter of this process to try next. If no
// waiter is left, it wakes the first waiter at the server. mu is held.
func (l *wakingLease) relyOnWaiter() {
	if q := l.queues.byName[l.lock.Name()]; q != nil {
		q.owedWake = l
		return
	}
	go l.wakeOthers()
}

// wakeOthers wakes the first waiter at the server after a release that relied on a waiter of this
// process, if none is left. It sends the release again: the release of a free lock wakes the first
// waiter. A waiter that has come meanwhile may have lost its place by that, so the leaders try
// again.
func (l *wakingLease) wakeOthers() {
	qs := l.queues
	_, _ = l.Lease.Do(context.Background(), lease.Op{Kind: lease.OpRelease, Waiter: qs.id, Next: lease.NextOther})
	qs.tryAgain(l.lock.Name())
}

// waitsItsTurn reports whether w makes no attempt before it leads. A reader may follow another one,
// and an owner may hold the lock already.
func (w *waiter) waitsItsTurn() bool { return !w.shared && w.owner == "" }

// waiting returns the lease.Waiting for an attempt of w. until is the end of its acquire.
func (w *waiter) waiting(until time.Time) lease.Waiting {
	q := w.queue
	q.all.mu.Lock()
	defer q.all.mu.Unlock()
	waiting := lease.Waiting{ID: q.all.id, Since: w.since, Until: until, Subscribed: w.subscription().sub != nil,
		Free: q.vacancy != unclear && !q.placed}
	if next := w.behind; next != nil && next.waitsItsTurn() {
		waiting.Next = next.since
	}
	q.placed, w.placed, w.passesOn = q.placed || !w.shared, true, !waiting.Next.IsZero()
	return waiting
}
