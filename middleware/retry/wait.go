package retry

import (
	"math/rand/v2"
	"time"

	"github.com/holdfast-go/holdfast/locker"
)

// awaitTurn waits in the queue until those ahead have left.
func (a *acquisition) awaitTurn() error {
	began := time.Now()
	if t := locker.TraceFrom(a.ctx); t != nil && t.Waiting != nil {
		t.Waiting(a.ctx, locker.WaitingInfo{Name: a.req.Name, Mode: a.req.Mode, Queued: a.place.queued})
	}
	turn, _ := a.place.listen()
	select {
	case <-turn:
	case <-a.ctx.Done():
	}
	if a.ctx.Err() != nil {
		if known := a.place.known(); !known.at.IsZero() {
			a.last = known
		}
		return a.giveUp(ended(a.ctx, a.caller))
	}
	a.traceWoken(locker.ByTurn, began)
	a.place.proceed()
	a.waits()
	return nil
}

// pause waits, after an attempt, until it is time for the next.
func (a *acquisition) pause() error {
	var wake <-chan locker.WakeReason
	var released <-chan struct{}
	if a.place != nil {
		if a.last.held != nil {
			a.place.subscribe(a.ctx, a.last.held.Channel)
		}
		wake, released = a.place.listen()
	}
	until, by := a.pollAt, locker.ByBackoff
	if end := a.last.leaseEnd(); !end.IsZero() && end.Before(until) {
		until, by = end, locker.ByLeaseEnd
	}
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	tick := timer.C
	if a.tooLate(until) {
		tick = nil
	}

	began := time.Now()
	if t := locker.TraceFrom(a.ctx); t != nil && t.Waiting != nil {
		t.Waiting(a.ctx, locker.WaitingInfo{
			Name: a.req.Name, Mode: a.req.Mode, Subscribed: released != nil, For: until.Sub(began), Err: a.last.error(began),
		})
	}
	select {
	case by = <-wake:
	case <-released:
		by = locker.ByRelease
		a.place.pass(by)
	case <-tick:
	case <-a.ctx.Done():
	}
	if jitter := a.wakeJitter(); jitter > 0 && (by == locker.ByRelease || by == locker.ByLeaseEnd) {
		timer.Reset(rand.N(jitter))
		select {
		case <-timer.C:
		case <-a.ctx.Done():
		}
	}
	if a.ctx.Err() != nil {
		return a.giveUp(ended(a.ctx, a.caller))
	}
	a.traceWoken(by, began)
	if a.place != nil {
		a.place.proceed()
	}
	return nil
}

// wakeJitter is the Config's, or what the refusal asks for where that is more.
func (a *acquisition) wakeJitter() time.Duration {
	if a.last.held == nil {
		return a.cfg.WakeJitter
	}
	return max(a.cfg.WakeJitter, a.last.held.Jitter)
}

// tooLate tells whether a look at a held lock at t would likely be cut off: ctx ends within twice what the fastest attempt
// took. Its outcome would be unknown in place of "held", and the strategy would have to clean up after it.
func (a *acquisition) tooLate(t time.Time) bool {
	end, ok := a.ctx.Deadline()
	return ok && a.last.held != nil && a.attempts > 1 && t.Add(2*a.fastest).After(end)
}

func (a *acquisition) traceWoken(by locker.WakeReason, began time.Time) {
	if t := locker.TraceFrom(a.ctx); t != nil && t.Woken != nil {
		t.Woken(a.ctx, locker.WokenInfo{Name: a.req.Name, Mode: a.req.Mode, By: by, Waited: time.Since(began)})
	}
}
