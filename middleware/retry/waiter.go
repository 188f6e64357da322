package retry

import (
	"time"

	"github.com/holdfast-go/holdfast/locker/locktrace"
)

// waiter is one place in a queue.
type waiter struct {
	queue         *queue
	ahead, behind *waiter                         // in its line
	links         struct{ ahead, behind *waiter } // among the unchecked
	number        int
	since         time.Time // when its acquire began
	shared        bool
	queued        int    // how many were ahead when it entered
	owner         string // "": none was asked for
	unchecked     bool   // it has an owner, and does not know whether that holds the lock
	placed        bool   // one of its attempts asked for a place at the server
	passesOn      bool   // its latest attempt asked to pass that on to the next waiter
	trying        bool   // its early attempt is under way
	began         int    // queue.entered when its latest attempt began
	asking        bool   // its latest attempt is in flight
	overlaps      bool   // its latest attempt began before a release was answered that left the lock to it
	left          bool
	won           bool // it left with the lock
	terms         terms
	inheritance   *inheritance // the hold that was handed over to it
	unwoken       *wakingLease // the queue's when its latest attempts began, until one is answered
	// wake holds at most one reason to try again. It is made when the waiter first waits or is
	// first woken: one that gets its lock at the first attempt has none.
	wake chan locktrace.WakeReason
}

// step is what a waiter does next.
type step int

const (
	stay      step = iota // wait
	send                  // make an attempt
	sendEarly             // make an attempt that leaves nothing behind where it is refused
	outOfTime             // an attempt would take longer than its time
	inherit               // take what was handed over
)

// leads reports whether w is the leader of its line.
func (w *waiter) leads() bool { return w.queue.line(w.shared).leader == w }

// next returns w's next step and, if that is stay, the time to call next again (zero: when woken).
// due says that a leader has a reason to send. end is the end of w's ctx.
func (w *waiter) next(now time.Time, due bool, end time.Time) (step, time.Time) {
	q := w.queue
	q.all.mu.Lock()
	defer q.all.mu.Unlock()
	if w.inheritance != nil {
		return inherit, time.Time{}
	}
	s, until := q.step(w, now, due)
	over := !end.IsZero() && !now.Before(end) // though ctx has not ended: its timer is late
	if s != stay && (over || q.known.held != nil && q.timing.tooLate(now, end, 1)) {
		return outOfTime, time.Time{}
	}
	return s, until
}

// begin is called at now, before w sends. The attempt covers all wake-ups until now, so begin
// discards them. It returns false if w need not send, because the lock was handed over to it.
func (w *waiter) begin(s step, now time.Time) bool {
	q := w.queue
	q.all.mu.Lock()
	defer q.all.mu.Unlock()
	if w.inheritance != nil {
		return false
	}
	w.began, w.overlaps = q.entered, q.next == w
	w.asking, q.silence = true, q.silence.begin(now)
	if s == sendEarly {
		w.trying, q.early.waiter, q.early.since = true, w, now
		if next := q.nextEarly(); next != nil {
			q.early.watcher = next
			next.notify(locktrace.ByTurn) // it watches the time now
		}
		return true // keep the wake-up: it may say that w leads now
	}
	select {
	case <-w.wake: // nil where w has never waited
	default:
	}
	select {
	case <-w.subscription().wake:
	default:
	}
	if q.unwoken != nil {
		w.unwoken, q.unwoken = q.unwoken, nil
	}
	return true
}

func (q *queue) step(w *waiter, now time.Time, due bool) (step, time.Time) {
	switch {
	case w.leads():
		if due && !now.Before(q.notBefore) {
			return send, time.Time{}
		}
		return stay, time.Time{}
	case w.shared && q.admits(w):
		if !q.closed {
			return send, time.Time{}
		}
		return stay, time.Time{}
	case !w.unchecked:
		return stay, time.Time{}
	case q.reentry.proven(w.owner):
		return sendEarly, time.Time{}
	case w != q.nextEarly():
		return stay, time.Time{}
	}
	until := q.early.notBefore
	if q.early.waiter != nil {
		until = q.early.since.Add(earlyPatience)
	}
	if now.Before(until) {
		return stay, until
	}
	return sendEarly, time.Time{}
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
	if w.queue.ordered && w.shared {
		return &w.queue.subscriptions[1]
	}
	return &w.queue.subscriptions[0]
}
