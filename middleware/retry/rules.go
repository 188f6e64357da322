package retry

import "time"

// view is a waiter's snapshot of its queue. The waiter's next step, and the outcome it reports, are
// functions of a view.
type view struct {
	request
	answers      answers
	leads        bool      // the waiter is the leader of its line
	admitted     bool      // it is shared, without an exclusive waiter ahead
	sharedClosed bool      // of the shared waiters, only the leader tries
	mayReenter   bool      // its owner was found to hold the lock since its latest attempt began
	quietUntil   time.Time // a leader makes no attempt before it
	reenters     bool      // an owner may acquire its lock again
	ownerQueued  bool      // another request of its owner is in the queue
}

// view returns w's view without ownerQueued. mu is held.
func (w *waiter) view() view {
	q := w.queue
	v := view{
		request: w.request, answers: q.answers, leads: w.leads(), admitted: w.shared && w.queued() && q.admits(w),
		sharedClosed: q.sharedClosed, mayReenter: w.mayReenter, reenters: q.all.reenters,
	}
	if v.leads && !q.all.closing {
		relies := w.waitsItsTurn() && v.answers.latest.here != nil && (q.placed || !q.all.strategy.fair)
		v.quietUntil = q.turn.quietUntil(relies)
	}
	return v
}

// step is the next action of a waiter.
type step int

const (
	stay        step = iota // wait
	send                    // make an attempt
	sendEarly               // make an attempt before the turn
	sendOutside             // make attempts outside the queue
	outOfTime               // give up: an attempt would end too late
)

// next returns the next step. The step stay lasts until until, or until a wake-up if that is zero. due:
// a leader has a reason to send. end is the end of the waiter's ctx.
func (v view) next(now time.Time, due bool, end time.Time) (next step, until time.Time) {
	switch {
	case v.leads && due && now.Before(v.quietUntil):
		return stay, v.quietUntil
	case v.leads && due, !v.leads && v.admitted && !v.sharedClosed:
		next = send
	case !v.leads && v.mayReenter:
		next = sendEarly
	default:
		return stay, time.Time{}
	}
	over := !end.IsZero() && !now.Before(end) // even if ctx's timer is late
	if over || v.answers.latest.held != nil && v.answers.tooLate(now, end, 1) {
		next = outOfTime
	}
	return next, time.Time{}
}

// latest returns the later of own, the waiter's own outcome, and the queue's. It ignores the queue's
// outcome if the strategy is reentrant and the holder is the waiter's owner, or if the holder may be an
// unanswered attempt of the waiter, by its history h. If there is none, and others were ahead all the
// time, the lock counts as held by them. ahead is the number of waiters ahead at entry.
func (v view) latest(own outcome, h history, ahead int, now time.Time) outcome {
	known := v.answers.latest
	switch {
	case v.reenters && v.ownerHolds(known):
	case h.mayHaveCaused(known) && v.mayBeHolder(known):
	case known.at.After(own.at):
		return known
	case own.at.IsZero() && ahead > 0 && !v.leads && !v.admitted && !h.unknown && !v.ownerQueued:
		return assumedHeld(v.name, now)
	}
	return own
}
