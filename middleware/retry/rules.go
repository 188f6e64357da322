package retry

import "time"

// view is a waiter's snapshot of its queue. The waiter's next step, and the outcome it reports, are
// functions of a view.
type view struct {
	request
	answers          answers
	leads            bool      // the waiter is the leader of its line
	admitted         bool      // it is shared, without an exclusive waiter ahead
	onlyLeaderShares bool      // of the shared waiters, only the leader tries
	mayReenter       bool      // its owner was found to hold the lock since its latest attempt began
	quietUntil       time.Time // a leader makes no attempt before it
	reenters         bool      // an owner may acquire its lock again
	ownerQueued      bool      // another request of its owner is in the queue, and may have acquired the lock
}

// view returns w's view. mu is held.
func (w *waiter) view() view {
	q := w.queue
	v := view{
		request: w.request, answers: q.answers, leads: w.leads(), admitted: w.shared && w.queued() && q.admits(w),
		onlyLeaderShares: q.onlyLeaderShares, mayReenter: w.mayReenter, reenters: q.all.reenters,
		ownerQueued: q.hasOther(w.owner, w),
	}
	if v.leads && !q.all.closing {
		heldHere := w.waitsItsTurn() && v.answers.latest.here != nil && (q.mayHavePlace || !q.all.server.fair)
		v.quietUntil = q.turn.quietUntil(heldHere)
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

// nextStep returns the next step. A leader in its quiet time stays until quietUntil. In every other
// case quietUntil is zero: a waiter that stays waits for a wake-up. due: a leader has a reason to
// send. end is the end of the waiter's ctx.
func (v view) nextStep(now time.Time, due bool, end time.Time) (s step, quietUntil time.Time) {
	switch {
	case v.leads && due && now.Before(v.quietUntil):
		return stay, v.quietUntil
	case v.leads && due, !v.leads && v.admitted && !v.onlyLeaderShares:
		s = send
	case !v.leads && v.mayReenter:
		s = sendEarly
	default:
		return stay, time.Time{}
	}
	expired := !end.IsZero() && !now.Before(end) // even if ctx's timer is late
	if expired || v.answers.latest.held != nil && v.answers.tooLate(now, end, 1) {
		s = outOfTime
	}
	return s, time.Time{}
}

// latest returns the outcome that the waiter reports. These rules apply in their order:
//
//  1. If the queue's outcome does not refuse the waiter, latest returns own, the waiter's own outcome.
//     The strategy is then reentrant and the waiter's owner is the holder; or the holder may be an
//     unanswered attempt of the waiter, by its history h.
//  2. If the queue's outcome is newer than own, latest returns it.
//  3. If nothing is known and others were ahead all the time, they count as the holders. ahead is the
//     number of waiters ahead at entry.
//  4. Otherwise latest returns own.
func (v view) latest(own outcome, h history, ahead int, now time.Time) outcome {
	ofQueue := v.answers.latest
	switch {
	case v.reenters && v.ownerHolds(ofQueue), h.mayHaveCaused(ofQueue) && v.mayBeHolder(ofQueue):
		return own
	case ofQueue.at.After(own.at):
		return ofQueue
	case own.at.IsZero() && ahead > 0 && !v.leads && !v.admitted && !h.unknown() && !v.ownerQueued:
		return assumedHeld(v.name, now)
	default:
		return own
	}
}
