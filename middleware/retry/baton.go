package retry

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/locker/locktrace"
)

// baton is of a release that left the lock to a waiter of this process. Who carries it tries for the
// lock. It is done with when a request here has the lock, or when an attempt was refused that began
// after the release was answered. If no waiter is left to carry it, the first waiter at the server
// is woken.
type baton struct {
	lease    *wakingLease // that was released
	ownOnly  bool         // the release wakes no other process
	answered bool
	carrier  *waiter // its attempt is in flight, and began since; nil: nobody's
	done     bool
}

// leftHere reports whether the latest release woke no other process, and no attempt has been
// answered since that came after it. mu is held.
func (q *queue) leftHere() bool { return q.baton != nil && q.baton.ownOnly }

// giveBaton gives the baton to w, whose attempt begins. mu is held.
func (q *queue) giveBaton(w *waiter) {
	if q.baton != nil && q.baton.carrier == nil {
		q.baton.carrier = w
	}
}

// dropBaton takes the baton from w, whose attempt was not answered, or before the release was. mu is held.
func (q *queue) dropBaton(w *waiter) {
	if q.baton != nil && q.baton.carrier == w {
		q.baton.carrier = nil
	}
}

// recordRefusal is called when an attempt of w was refused. mu is held.
func (q *queue) recordRefusal(w *waiter) {
	if q.baton != nil && q.baton.carrier == w && q.baton.answered {
		q.baton = nil
	}
	q.dropBaton(w)
	q.vacant = q.vacant && w.attempt == early
}

// endBaton is called when this process has acquired the lock, by an attempt of w, or outside the
// queue if w is nil. alone says that nobody else can hold it. mu is held.
func (q *queue) endBaton(w *waiter, alone bool) {
	if q.baton != nil && (alone || w != nil && q.baton.carrier == w) {
		q.baton.done = true
		q.baton = nil
	}
}

// chooseNext returns who is to try after the release of l, and own, the ID of this process if it has a
// leader that tries at once, or a place to remove (lease.NextOther). If the release leaves the lock
// to the leader, chooseNext wakes it, and returns the baton. keeps says that the name stays taken.
func (l *wakingLease) chooseNext(keeps bool) (own string, next lease.Next, b *baton) {
	qs := l.queues
	qs.mu.Lock()
	defer qs.mu.Unlock()
	q, now := qs.byName[l.lock.Name()], time.Now()
	if q == nil {
		if qs.forgetPlace(l.lock.Name()) {
			return qs.id, lease.NextOther, nil
		}
		return "", lease.NextFirst, nil
	}
	switch leader := q.leader(false); {
	case keeps, leader == nil, !qs.strategy.queues, q.turn.yields(now):
		return "", lease.NextFirst, nil
	case !qs.strategy.fair && q.turn.serves(leader, now):
		// Woken before the release is sent, its attempt follows that without waiting for the answer.
		q.recordRelease(l.lock, now)
		q.baton = &baton{lease: l, ownOnly: true}
		leader.notify(locktrace.ByRelease)
		return qs.id, lease.NextOwn, q.baton
	}
	return qs.id, lease.NextFirst, nil
}

// released wakes the leaders of the lock's queue after op, which returned term and err. sent is the
// baton since op was sent; nil: there was none.
func (l *wakingLease) released(op lease.Op, term lease.Term, err error, sent *baton) {
	qs := l.queues
	qs.mu.Lock()
	defer qs.mu.Unlock()
	if sent != nil && sent.done {
		return
	}
	q, relies := qs.byName[l.lock.Name()], op.Waiter != "" && op.Next != lease.NextOther && err == nil
	switch {
	case q != nil && q.heldByOther(l.lock):
		return // whose release wakes the next one
	case q != nil && relies:
		// What is in flight may have come before the release.
		q.baton = &baton{lease: l, ownOnly: op.Next == lease.NextOwn, answered: true}
	case q != nil && q.baton == sent:
		q.baton = nil
	case relies:
		go l.wakeOthers()
	}
	if q != nil {
		q.afterRelease(l.lock, term.Others)
	}
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
