package retry

import (
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/locker/locktrace"
)

// timing records how long attempts take. The first one may have dialed, so tooLate waits for a
// second one.
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

// outage returns silence, or zero if that is too short to be an outage.
func (t timing) outage(silence time.Duration) time.Duration {
	if silence < max(time.Second, 2*t.fastest) {
		return 0
	}
	return silence
}

// silence measures for how long attempts have been in flight without an answer. While none is in
// flight it does not grow: nobody asks.
type silence struct {
	inFlight int
	since    time.Time     // when the first of those in flight began
	before   time.Duration // sum of the times that ended without an answer
}

func (s silence) begin(now time.Time) silence {
	if s.inFlight == 0 {
		s.since = now
	}
	s.inFlight++
	return s
}

// end is for an attempt that ended without an answer. Less time than the fastest attempt takes does
// not count: no answer was due.
func (s silence) end(now time.Time, fastest time.Duration) silence {
	if s.inFlight--; s.inFlight > 0 {
		return s
	}
	if took := now.Sub(s.since); took >= fastest {
		s.before += took
	}
	return s
}

func (s silence) length(now time.Time) time.Duration {
	if s.inFlight == 0 {
		return s.before
	}
	return s.before + now.Sub(s.since)
}

// answer is for an answer. For the attempts that are in flight the silence begins anew.
func (s silence) answer(now time.Time) silence { return silence{inFlight: s.inFlight, since: now} }

// answered ends the silence with the answer to w's attempt.
func (w *waiter) answered(now time.Time) {
	w.cutOff(now)
	w.queue.silence = w.queue.silence.answer(now)
}

// cutOff ends w's attempt, if it has one in flight.
func (w *waiter) cutOff(now time.Time) {
	if q := w.queue; w.asking {
		q.silence = q.silence.end(now, q.timing.fastest)
	}
	w.asking = false
}

// record stores the outcome of w's attempt, which took the time took, for all waiters.
func (w *waiter) record(o outcome, took time.Duration) {
	q := w.queue
	q.all.mu.Lock()
	defer q.all.mu.Unlock()
	q.learn(o, w)
	w.answered(time.Now())
	q.closed = q.closed || w.shared
	if o.held != nil {
		if !w.overlaps {
			w.owedWake = nil
		}
		q.timing = q.timing.add(took)
		q.all.strategy.learn(o.held)
		if o.held.Queue && !w.overlaps && !w.early { // else it says nothing of what the release left
			q.vacancy = unclear
		}
	}
	q.advance(w)
}

// acquired gives up w's place: it has the lock now. alone says that nobody else can hold it.
func (w *waiter) acquired(lock *locker.Lock, note string, alone bool) {
	q, now := w.queue, time.Now()
	q.all.mu.Lock()
	w.owedWake = nil
	w.answered(now)
	if q.size > 1 {
		q.granted(lock, note, alone, w)
	}
	if alone {
		q.beginTurn(now, w.early)
	}
	if w.placed && !w.shared {
		q.placed = w.passesOn && q.all.strategy.fair
	}
	left := q.remove(w, true)
	q.all.mu.Unlock()
	left.close()
}

// acquiredOutsideQueue is for a lock that was acquired without queueing.
func (qs *queues) acquiredOutsideQueue(lock *locker.Lock, note string, alone bool) {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	if q := qs.byName[lock.Name()]; q != nil {
		q.granted(lock, note, alone, nil)
		q.advance(nil)
	}
}

// granted records that a request of this process has acquired the lock: w, or one outside the queue
// if w is nil. alone says that nobody else can hold it.
func (q *queue) granted(lock *locker.Lock, note string, alone bool, w *waiter) {
	q.silence = q.silence.answer(time.Now())
	if !alone {
		q.known = outcome{}
		q.open()
		return
	}
	held := &locker.ContentionError{Name: q.name, Owner: lock.Owner(), Note: note}
	q.learn(outcome{held: held, here: lock.Hold(), at: time.Now()}, w)
}

// released wakes the leaders of the queue of lock's name, if there is one: the lock may be free, as v
// says. others is what the release found out. mu is held.
func (qs *queues) released(lock lease.Hold, v vacancy, others lease.Others) {
	q := qs.byName[lock.Name()]
	if q == nil {
		return
	}
	now := time.Now()
	if v == unclear && others == lease.OthersNone {
		v = vacant
	}
	q.freed(lock, now, v)
	if others == lease.OthersWoken && !qs.strategy.fair {
		q.notBefore = now.Add(minYield)
	}
	q.wakeLeaders(locktrace.ByRelease)
}

// freed records that this process releases lock, and what that says of it. mu is held.
func (q *queue) freed(lock lease.Hold, now time.Time, v vacancy) {
	q.vacancy = v
	if was := q.known; was.here != nil || q.all.reenters && was.owner() != "" && was.owner() == lock.Owner() {
		held := &locker.ContentionError{Name: q.name, Owner: was.held.Owner, Note: was.held.Note}
		q.known = outcome{held: held, assumed: true, at: now} // held until now
	}
}

// howLong returns how long attempts take.
func (w *waiter) howLong() timing {
	w.queue.all.mu.Lock()
	defer w.queue.all.mu.Unlock()
	return w.queue.timing
}

// latest returns the later of own, which is w's own outcome, and q.known. It ignores q.known if
// that names w's owner and the strategy is reentrant, or if the holder may be an unanswered attempt
// of w, by its history h. If there is neither and others are ahead, or were all the time, the lock
// counts as held by them. outage is for how long the queue has waited for an answer, or zero if the
// outcome is not too old for that.
func (w *waiter) latest(own outcome, h history, now time.Time) (o outcome, outage time.Duration) {
	q := w.queue
	q.all.mu.Lock()
	defer q.all.mu.Unlock()
	o = own
	switch {
	case q.all.reenters && w.ownedBy(q.known):
	case h.maySee(q.known) && w.mayBeHolder(q.known):
	case q.known.at.After(own.at):
		o = q.known
	case own.at.IsZero() && w.queued > 0 && !w.leads() && (w.left || !w.shared || !q.admits(w)) &&
		!h.unknown && !w.behindItself():
		o = outcome{held: &locker.ContentionError{Name: q.name}, assumed: true, at: now}
	}
	return o, q.outage(o, now)
}

// outage returns how long the queue has waited for an answer, if o is too old for it: zero if it is
// not. mu is held.
func (q *queue) outage(o outcome, now time.Time) time.Duration {
	if o.err != nil || o.heldHere(now) {
		return 0
	}
	return q.timing.outage(q.silence.length(now))
}

// known is latest for a request that waits behind those in the queue of name.
func (qs *queues) known(name string, now time.Time) (o outcome, outage time.Duration) {
	o = outcome{held: &locker.ContentionError{Name: name}, assumed: true, at: now}
	qs.mu.Lock()
	defer qs.mu.Unlock()
	q := qs.byName[name]
	if q == nil {
		return o, 0
	}
	if !q.known.at.IsZero() {
		o = q.known
	}
	return o, q.outage(o, now)
}
