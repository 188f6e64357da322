package retry

import "time"

// view is what a waiter sees of its queue at one time. What it does next, and what it reports, are
// functions of that.
type view struct {
	request
	answers      answers
	leads        bool      // the leader of its line is this waiter
	admitted     bool      // it is shared, and no exclusive waiter is ahead of it
	sharedClosed bool      // of the shared waiters, only the leader tries
	mayReenter   bool      // its owner was said to hold the lock since its latest attempt began
	quietUntil   time.Time // until then a leader makes no attempt that no release here wakes it for
	reenters     bool      // the owner of a lock is granted it again
	ownerQueued  bool      // another request of its owner is in the queue
}

// view returns what w sees, but for ownerQueued. mu is held.
func (w *waiter) view() view {
	q := w.queue
	v := view{
		request: w.request, answers: q.answers, leads: w.leads(), admitted: w.shared && !w.left && q.admits(w),
		sharedClosed: q.sharedClosed, mayReenter: w.mayReenter, reenters: q.all.reenters,
	}
	if v.leads && !q.all.closing {
		relies := w.waitsItsTurn() && v.answers.latest.here != nil && (q.placed || !q.all.strategy.fair)
		v.quietUntil = q.turn.quietUntil(relies)
	}
	return v
}

// step is what a waiter does next.
type step int

const (
	stay        step = iota // wait
	send                    // make an attempt
	sendEarly               // make an attempt before the turn
	sendOutside             // make attempts outside the queue
	outOfTime               // an attempt would take longer than its time
)

// next returns the next step, and until when to stay; zero: until a wake-up. due: a leader has a
// reason to send. end is the end of the waiter's ctx.
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
	over := !end.IsZero() && !now.Before(end) // though ctx has not ended: its timer is late
	if over || v.answers.latest.held != nil && v.answers.tooLate(now, end, 1) {
		next = outOfTime
	}
	return next, time.Time{}
}

// latest returns what is known to a waiter whose own latest outcome is own, by its history h: the
// later of that and the queue's. The queue's does not count if it names the waiter's owner and the
// strategy is reentrant, or if the holder may be an unanswered attempt of the waiter. If there is
// neither, and others were ahead all the time, the lock counts as held by them. ahead is how many
// were when the waiter entered.
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
