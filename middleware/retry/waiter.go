package retry

import (
	"time"

	"github.com/holdfast-go/holdfast/locker/locktrace"
)

// waiter is one place in a queue.
type waiter struct {
	queue         *queue
	ahead, behind *waiter // in its line
	number        int
	since         time.Time // when its acquire began
	shared        bool
	queued        int    // how many were ahead when it entered
	owner         string // "": none was asked for
	mayReenter    bool   // its owner was said to hold the lock since its latest attempt began
	placed        bool   // one of its attempts asked for a place at the server
	passesOn      bool   // its latest attempt asked to pass that on to the next waiter
	asking        bool   // its latest attempt is in flight
	early         bool   // its latest attempt was made before its turn
	overlaps      bool   // its latest attempt began before a release was answered that left the lock to it
	left          bool
	won           bool         // it left with the lock
	owedWake      *wakingLease // the queue's when its latest attempts began, until one is answered
	// wake holds at most one reason to try again. It is made when the waiter first waits or is
	// first woken: one that gets its lock at the first attempt has none.
	wake chan locktrace.WakeReason
}

// step is what a waiter does next.
type step int

const (
	stay      step = iota // wait
	send                  // make an attempt
	sendEarly             // make an attempt before the turn
	outOfTime             // an attempt would take longer than its time
)

// leads reports whether w is the leader of its line.
func (w *waiter) leads() bool { return w.queue.line(w.shared).leader == w }

// next returns w's next step. After stay, it is called again when w is woken, or at until unless zero.
// due: a leader has a reason to send. begins: if the next step is to send, it begins now. end is the
// end of w's ctx.
func (w *waiter) next(now time.Time, due, begins bool, end time.Time) (_ step, until time.Time) {
	q := w.queue
	q.all.mu.Lock()
	defer q.all.mu.Unlock()
	s, until := q.step(w, now, due)
	over := !end.IsZero() && !now.Before(end) // though ctx has not ended: its timer is late
	if s != stay && (over || q.known.held != nil && q.timing.tooLate(now, end, 1)) {
		return outOfTime, time.Time{}
	}
	if begins && s != stay {
		w.begin(s, now)
	}
	return s, until
}

// beginAt is begin for a caller without mu.
func (w *waiter) beginAt(s step, now time.Time) {
	w.queue.all.mu.Lock()
	defer w.queue.all.mu.Unlock()
	w.begin(s, now)
}

// begin is called at now, before w sends. The attempt covers all wake-ups until now, so begin
// discards them. mu is held.
func (w *waiter) begin(s step, now time.Time) {
	q := w.queue
	w.asking, w.early, w.mayReenter, w.overlaps = true, s == sendEarly, false, q.next == w
	q.silence = q.silence.begin(now)
	if w.early {
		return // keep the wake-up: it may say that w leads now
	}
	select {
	case <-w.wake: // nil where w has never waited
	default:
	}
	select {
	case <-w.subscription().wake:
	default:
	}
	if q.owedWake != nil {
		w.owedWake, q.owedWake = q.owedWake, nil
	}
}

func (q *queue) step(w *waiter, now time.Time, due bool) (_ step, until time.Time) {
	switch {
	case w.leads() && due:
		if until = q.quietUntil(w); now.Before(until) {
			return stay, until
		}
		return send, time.Time{}
	case !w.leads() && w.shared && q.admits(w) && !q.closed:
		return send, time.Time{}
	case !w.leads() && w.mayReenter:
		return sendEarly, time.Time{}
	default:
		return stay, time.Time{}
	}
}

// notify puts by into w's channel unless there is a reason already.
func (w *waiter) notify(by locktrace.WakeReason) {
	select {
	case w.channel() <- by:
	default:
	}
}

func (w *waiter) channel() chan locktrace.WakeReason {
	if w.wake == nil {
		w.wake = make(chan locktrace.WakeReason, 1)
	}
	return w.wake
}

// listen returns what w has to listen to while it waits. released is nil unless it leads and there
// is a subscription.
func (w *waiter) listen() (wake <-chan locktrace.WakeReason, released <-chan struct{}, leads bool) {
	q := w.queue
	q.all.mu.Lock()
	defer q.all.mu.Unlock()
	if leads = w.leads(); leads {
		released = w.subscription().wake
	}
	return w.channel(), released, leads
}

// subscription is the one that w has as a leader. mu is held.
func (w *waiter) subscription() *subscription {
	if w.queue.all.strategy.ordered && w.shared {
		return &w.queue.subscriptions[1]
	}
	return &w.queue.subscriptions[0]
}
