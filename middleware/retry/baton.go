package retry

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/locker/locktrace"
)

// baton records that a release relied on a waiter of this process: the server may have woken nobody.
// So this process must try for the lock, and the next attempt in turn carries the baton. A queue has
// at most one, of its latest release.
//
//	state     event                                        next state
//	none      a release that leaves the lock here is sent  sent
//	none      a release that relied on a waiter here is    answered
//	          answered
//	sent      the release is answered                      answered, not carried
//	sent      the release fails                            none
//	sent      the carrier is refused                       sent, not carried: its attempt may have
//	                                                       come before the release
//	answered  the carrier is refused                       none: the lock has another holder
//	any       the carrier fails or gives up                the same, not carried
//	any       the carrier acquires the lock, or a request  none, and done
//	          here acquires it alone
//	any       the last waiter leaves                       none: after the answer, wakeOthers wakes
//	                                                       the first waiter at the server
type baton struct {
	lease    *wakingLease // the released one
	ownOnly  bool         // the release wakes no other process (lease.Op.ForWaiter)
	answered bool         // the state is answered, set by released alone; otherwise sent
	carrier  *waiter      // its attempt carries the baton and is in flight; nil: none
	done     bool         // a request here has the lock: an answer to the release begins no baton
}

// leftHere reports whether the latest release left the lock to this process alone. mu is held.
func (q *queue) leftHere() bool { return q.baton != nil && q.baton.ownOnly }

// giveBaton makes w, whose attempt begins, the carrier if there is none. mu is held.
func (q *queue) giveBaton(w *waiter) {
	if q.baton != nil && q.baton.carrier == nil {
		q.baton.carrier = w
	}
}

// dropBaton takes the baton from w: the next attempt carries it. mu is held.
func (q *queue) dropBaton(w *waiter) {
	if q.baton != nil && q.baton.carrier == w {
		q.baton.carrier = nil
	}
}

// recordRefusal records a refusal of w's attempt: unless early, it shows that the lock is not vacant.
// It ends the baton if the attempt began after the answer to the release. mu is held.
func (q *queue) recordRefusal(w *waiter) {
	if q.baton != nil && q.baton.carrier == w && q.baton.answered {
		q.baton = nil
	}
	q.dropBaton(w)
	q.vacant = q.vacant && w.attempt == early
}

// endBaton ends the baton after an acquire by w, or outside the queue if w is nil. If others can hold
// the lock too (alone is false), only the carrier's acquire ends it. mu is held.
func (q *queue) endBaton(w *waiter, alone bool) {
	if q.baton != nil && (alone || w != nil && q.baton.carrier == w) {
		q.baton.done = true
		q.baton = nil
	}
}

// chooseNext sets who is to try next after op, a release. If the release leaves the lock to the
// leader here, chooseNext wakes the leader and returns its baton.
func (l *wakingLease) chooseNext(op *lease.Op) *baton {
	op.Waiter, op.ForWaiter, op.WaiterLeft = "", false, false
	qs := l.queues
	qs.mu.Lock()
	defer qs.mu.Unlock()
	q, now := qs.byName[l.lock.Name()], time.Now()
	if q == nil {
		if qs.forgetPlace(l.lock.Name()) {
			op.Waiter, op.WaiterLeft = qs.id, true
		}
		return nil
	}
	switch leader := q.leader(false); {
	case !op.KeepUntil.IsZero(), leader == nil, !qs.server.used, q.turn.yields(now):
		return nil
	case !qs.server.fair && q.turn.serves(leader, now):
		// Woken before the release is sent, its attempt follows that without waiting for the answer.
		q.recordRelease(l.lock, now)
		q.baton = &baton{lease: l, ownOnly: true}
		leader.notify(locktrace.ByRelease)
		op.Waiter, op.ForWaiter = qs.id, true
		return q.baton
	}
	op.Waiter = qs.id
	return nil
}

// released wakes the leaders after op, a release or a conversion with the result and err. given
// is the baton that chooseNext returned.
func (l *wakingLease) released(op lease.Op, result lease.Result, err error, given *baton) {
	qs := l.queues
	qs.mu.Lock()
	defer qs.mu.Unlock()
	if given != nil && given.done {
		return
	}
	q, reliedOnUs := qs.byName[l.lock.Name()], op.Waiter != "" && !op.WaiterLeft && err == nil
	switch {
	case q != nil && q.heldByOther(l.lock):
		return // the other's release wakes the next one
	case q != nil && reliedOnUs:
		// An attempt in flight may have come before the release: it does not carry this baton.
		q.baton = &baton{lease: l, ownOnly: op.ForWaiter, answered: true}
	case q != nil && q.baton == given:
		q.baton = nil
	case reliedOnUs:
		go l.wakeOthers()
	}
	if q != nil {
		q.afterRelease(l.lock, result)
	}
}

// wakeOthers wakes the first waiter at the server, after a release that relied on a waiter of this
// process if no waiter is left here. It sends the release again: the release of a free lock wakes the
// first waiter. The release removes the place of this process, so the leaders of a new queue try again.
func (l *wakingLease) wakeOthers() {
	qs := l.queues
	_, _ = l.Lease.Do(context.Background(), lease.Op{Kind: lease.OpRelease, Waiter: qs.id, WaiterLeft: true})
	qs.tryAgain(l.lock.Name())
}
