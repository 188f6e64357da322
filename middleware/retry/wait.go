package retry

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/locker/locktrace"
)

// await waits in the queue, from now, until the next attempt is due. entered: a has just entered; else
// it has made an attempt.
func (a *acquisition) await(now time.Time, entered bool) (step, error) {
	end, _ := a.ctx.Deadline()
	due, by := entered, locktrace.ByTurn
	for ; ; now = time.Now() {
		traced := !a.waitBegan.IsZero() // then a callback runs before the attempt begins
		step, quietUntil := a.waiter.nextStep(now, due, !traced, end)
		switch step {
		case stay:
			if a.attempts == 0 && a.enclosingHold() != nil {
				return sendOutside, nil
			}
		case outOfTime:
			return stay, a.giveUp(a.awaitEnd())
		default:
			if traced {
				a.traceWoken(by)
				a.announced = a.announced || step == send
				now = time.Now() // the callback may have taken long
				a.waiter.beginAt(step, now)
			}
			a.attemptBegan = now
			return step, nil
		}
		p := a.planWait(quietUntil, by, end)
		if a.waitBegan.IsZero() {
			a.waitBegan = now
			a.traceWaiting(p.info(a, now))
		}
		by, due = a.awaitWakeUp(p), true
		if !p.leads && !p.until.IsZero() && !time.Now().Before(p.until) {
			a.waiter.checkOwner(a.ownerCheck.since)
			a.ownerCheck = ownerCheck{}
		}
		if a.ctx.Err() != nil {
			return stay, a.giveUp(ended(a.ctx, a.caller))
		}
	}
}

// waitPlan holds the possible ends of a wait.
type waitPlan struct {
	wake      <-chan locktrace.WakeReason
	released  <-chan struct{} // nil: no subscription
	leads     bool
	until     time.Time            // next attempt or ownerCheck without a wake-up; zero: none
	by        locktrace.WakeReason // the reason at until
	postponed bool                 // already woken for by: until is the end of the quiet time
	tooLate   bool                 // an attempt at until would end too late: none is made
}

// planWait returns the next waitPlan. Only a leader tries again without a wake-up: after its quiet
// time, if there is one, for the reason by; else at nextPoll. Another waiter's until is its
// ownerCheck.
func (a *acquisition) planWait(quietUntil time.Time, by locktrace.WakeReason, end time.Time) (p waitPlan) {
	a.watchClose()
	if p.wake, p.released, p.leads = a.waiter.listen(); !p.leads {
		p.until = a.ownerCheck.at
		return p
	}
	if p.postponed = !quietUntil.IsZero(); p.postponed {
		p.until, p.by = quietUntil, by
		return p
	}
	p.until, p.by = a.nextPoll(p.released != nil)
	if a.last.held != nil {
		a.waiter.subscribe(a.ctx, a.last.held)
		p.wake, p.released, _ = a.waiter.listen()
		p.tooLate = a.waiter.currentView().answers.tooLate(p.until, end, 2)
	}
	return p
}

func (p waitPlan) info(a *acquisition, now time.Time) locktrace.WaitingInfo {
	info := locktrace.WaitingInfo{Name: a.req.Name, Mode: a.req.Mode.String(), Subscribed: p.released != nil,
		Err: a.last.error(now)}
	if !p.until.IsZero() {
		info.For = p.until.Sub(now)
	}
	if !p.leads {
		info.Queued = a.ahead
	}
	return info
}

// awaitWakeUp waits as planned, and then for the jitter, or until ctx ends.
func (a *acquisition) awaitWakeUp(p waitPlan) (by locktrace.WakeReason) {
	var tick <-chan time.Time
	if !p.until.IsZero() && !p.tooLate {
		timer := time.NewTimer(time.Until(p.until))
		defer timer.Stop()
		tick = timer.C
	}
	select {
	case by = <-p.wake:
	case <-p.released:
		by = locktrace.ByRelease
	case <-tick:
		if by = p.by; p.postponed {
			return by
		}
	case <-a.ctx.Done():
	}
	if jitter := a.wakeJitter(); jitter > 0 && (by == locktrace.ByRelease || by == locktrace.ByLeaseEnd) {
		a.sleepUntilClose(rand.N(jitter))
	}
	return by
}

// pause waits for the end of the policy's pause, outside the queue.
func (a *acquisition) pause() error {
	began := time.Now()
	a.traceWaiting(locktrace.WaitingInfo{Name: a.req.Name, Mode: a.req.Mode.String(), For: a.pollAt.Sub(began),
		Err: a.last.error(began)})
	a.sleepUntilClose(a.pollAt.Sub(began))
	if a.ctx.Err() != nil {
		return a.giveUp(ended(a.ctx, a.caller))
	}
	a.waitBegan = began
	a.traceWoken(locktrace.ByBackoff)
	return nil
}

// sleepUntilClose waits for d, or until ctx ends or a driver is being closed.
func (a *acquisition) sleepUntilClose(d time.Duration) {
	ctx, cancel := context.WithTimeout(a.ctx, d)
	defer cancel()
	if closing, ok := lease.Find[interface {
		OnClose(f func()) (stop func() bool)
	}](a.inner); ok {
		defer closing.OnClose(cancel)()
	}
	<-ctx.Done()
}

// nextPoll returns the time of a leader's next attempt without a wake-up: the end of the policy's pause,
// or of the lease.
func (a *acquisition) nextPoll(subscribed bool) (at time.Time, by locktrace.WakeReason) {
	at, by = a.pollAt, locktrace.ByBackoff
	if end := a.last.retryAt(); !end.IsZero() && (end.Before(at) || subscribed && a.pollsRarely()) {
		at = end
		// else the lock is free and kept for another waiter
		if held := a.last.held; held.RetryAfter >= held.Left && (held.Left > 0 || !held.Queue) {
			by = locktrace.ByLeaseEnd
		}
	}
	return at, by
}

// pollsRarely reports whether a leader with a subscription waits for a wake-up or the refusal's
// RetryAfter, not for the policy: it has a place at the server.
func (a *acquisition) pollsRarely() bool {
	held := a.last.held
	return a.cfg.Policy == nil && held.Queue && !held.Foreign && a.waiter.askedForPlace
}

// wakeJitter returns the Config's WakeJitter, or the refusal's if larger.
func (a *acquisition) wakeJitter() time.Duration {
	if a.last.held == nil {
		return a.cfg.WakeJitter
	}
	return max(a.cfg.WakeJitter, a.last.held.Jitter)
}

func (a *acquisition) traceWaiting(info locktrace.WaitingInfo) {
	if t := locktrace.From(a.ctx); t != nil && t.Waiting != nil {
		t.Waiting(a.ctx, info)
	}
}

// traceWoken ends the traced wait, if any.
func (a *acquisition) traceWoken(by locktrace.WakeReason) {
	if a.waitBegan.IsZero() {
		return
	}
	began := a.waitBegan
	a.waitBegan = time.Time{}
	if t := locktrace.From(a.ctx); t != nil && t.Woken != nil {
		t.Woken(a.ctx, locktrace.WokenInfo{Name: a.req.Name, Mode: a.req.Mode.String(), By: by,
			Waited: time.Since(began)})
	}
}
