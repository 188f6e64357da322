package retry

import (
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/locker/locktrace"
)

// waiter is one request in a queue.
type waiter struct {
	queue         *queue
	ahead, behind *waiter // in its line
	number        int     // 0: it has left
	request
	mayReenter    bool    // its owner was found to hold the lock since its latest attempt began
	attempt       attempt // in flight
	askedForPlace bool    // one of its attempts asked for a place in the server's queue
	heir          *waiter // to which its latest attempt asked to pass the place on; nil: none
	// wake holds at most one reason to try again. It is made for the first wait or wake-up: a waiter
	// that succeeds at once has none.
	wake chan locktrace.WakeReason
}

// request is the request of a waiter.
type request struct {
	name   string
	since  time.Time // begin of its acquire
	shared bool
	owner  string // "": none was asked for
}

// waitsItsTurn reports whether r makes no attempt before it leads. A reader may follow another one,
// and an owner may hold the lock already.
func (r request) waitsItsTurn() bool { return !r.shared && r.owner == "" }

// attempt is the kind of a waiter's attempt in flight.
type attempt int

const (
	noAttempt attempt = iota
	inTurn
	early // before the turn: its owner holds the lock
)

// queued reports whether w is in its queue.
func (w *waiter) queued() bool { return w.number > 0 }

// leads reports whether w is the leader of its line.
func (w *waiter) leads() bool { return w.queue.leader(w.shared) == w }

// nextStep is view.nextStep. begins: if the step is an attempt in the queue, it begins at now.
func (w *waiter) nextStep(now time.Time, due, begins bool, end time.Time) (s step, quietUntil time.Time) {
	w.queue.all.mu.Lock()
	defer w.queue.all.mu.Unlock()
	s, quietUntil = w.view().nextStep(now, due, end)
	if begins && (s == send || s == sendEarly) {
		w.begin(s, now)
	}
	return s, quietUntil
}

// beginAt is begin for a caller without mu.
func (w *waiter) beginAt(s step, now time.Time) {
	w.queue.all.mu.Lock()
	defer w.queue.all.mu.Unlock()
	w.begin(s, now)
}

// begin records the begin of w's attempt at now. The attempt covers all wake-ups until now: begin
// discards them, unless the attempt is early. The messages are the leader's. mu is held.
func (w *waiter) begin(s step, now time.Time) {
	q := w.queue
	w.mayReenter = false
	q.answers.begin(now)
	if w.attempt = inTurn; s == sendEarly {
		w.attempt = early
		return // keep the wake-up: it may say that w leads now
	}
	select {
	case <-w.wake: // nil if w has never waited
	default:
	}
	if w.leads() { // a message covered by another's attempt alone is lost if that is cut off
		select {
		case <-w.subscription().messages():
		default:
		}
	}
	q.giveBaton(w)
}

// notify puts by into w's channel unless there is a reason already.
func (w *waiter) notify(by locktrace.WakeReason) {
	select {
	case w.wakeChannel() <- by:
	default:
	}
}

func (w *waiter) wakeChannel() chan locktrace.WakeReason {
	if w.wake == nil {
		w.wake = make(chan locktrace.WakeReason, 1)
	}
	return w.wake
}

// listen returns the channels of a waiting w. released is nil unless w leads and has a subscription.
func (w *waiter) listen() (wake <-chan locktrace.WakeReason, released <-chan struct{}, leads bool) {
	q := w.queue
	q.all.mu.Lock()
	defer q.all.mu.Unlock()
	if leads = w.leads(); leads {
		released = w.subscription().messages()
	}
	return w.wakeChannel(), released, leads
}

// subscription returns the subscription w uses as a leader, or nil. mu is held.
func (w *waiter) subscription() *subscription { return w.subscribedLine().subscription }

// subscribedLine returns the line whose subscription w uses as a leader. mu is held.
func (w *waiter) subscribedLine() *line {
	return w.queue.line(w.shared && w.queue.all.ordered)
}

// recordOutcome stores the outcome and duration of w's attempt for all waiters.
func (w *waiter) recordOutcome(o outcome, took time.Duration) {
	q, now := w.queue, time.Now()
	q.all.mu.Lock()
	defer q.all.mu.Unlock()
	q.setLatest(o, w)
	q.onlyLeaderShares = q.onlyLeaderShares || w.shared
	if o.held == nil {
		q.dropBaton(w)
	} else {
		q.answers.addRefusal(took)
		if o.held.Queue {
			q.all.server = serverQueue{used: true, fair: o.held.Fair}
		}
		q.recordRefusal(w)
	}
	q.answers.answered(w, now)
}

// recordAnswer records an answer at now that says nothing about the lock.
func (w *waiter) recordAnswer(now time.Time) {
	w.queue.all.mu.Lock()
	defer w.queue.all.mu.Unlock()
	w.queue.answers.answered(w, now)
}

// leaveAcquired removes w after its acquire. alone: nobody else can hold the lock.
func (w *waiter) leaveAcquired(lock *locker.Lock, note string, alone bool) {
	q, now := w.queue, time.Now()
	q.all.mu.Lock()
	if alone && w.attempt != early && q.all.server.used && !q.leftHere() { // an early attempt may be a re-entry
		q.turn = turn{began: now, last: q.entered}
	}
	if w.askedForPlace && !w.shared {
		if q.mayHavePlace = w.heir != nil && q.all.server.fair; q.mayHavePlace && w.behind != w.heir {
			q.turn = turn{} // the place has the age of a waiter that has left: see remove
		}
	}
	q.recordAcquire(lock, note, alone, w)
	cleanup := q.remove(w, true)
	q.all.mu.Unlock()
	cleanup.run()
}

// currentView is view for a caller without mu.
func (w *waiter) currentView() view {
	w.queue.all.mu.Lock()
	defer w.queue.all.mu.Unlock()
	return w.view()
}

// leave removes w without the lock, unless w has left.
func (w *waiter) leave() {
	if !w.queued() { // only w's own goroutine changes it
		return
	}
	q := w.queue
	q.all.mu.Lock()
	cleanup := q.remove(w, false)
	q.all.mu.Unlock()
	cleanup.run()
}

// waiting returns the lease.Waiting of w's next attempt, and records that the attempt asks for a
// place in the server's queue. until is the end of w's acquire.
func (w *waiter) waiting(until time.Time) lease.Waiting {
	q := w.queue
	q.all.mu.Lock()
	defer q.all.mu.Unlock()
	waiting := lease.Waiting{ID: q.all.id, Since: w.since, Until: until, Subscribed: w.subscription().made(),
		Free: (q.vacant || q.leftHere()) && !q.mayHavePlace}
	if w.heir = w.behind; w.heir != nil && !w.heir.waitsItsTurn() {
		w.heir = nil
	}
	if w.heir != nil {
		waiting.Next = w.heir.since
	}
	q.mayHavePlace, w.askedForPlace = q.mayHavePlace || !w.shared, true
	return waiting
}
