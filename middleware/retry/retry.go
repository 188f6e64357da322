package retry

import (
	"context"
	"errors"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
)

// retrier is a Locker that waits around one that does not.
type retrier struct {
	inner  locker.Locker
	cfg    Config
	queues *queues
}

// Acquire implements locker.Locker.
func (r *retrier) Acquire(ctx context.Context, req locker.Request) (*locker.Lock, error) {
	if err := r.check(ctx, req); err != nil {
		return nil, wrap(req, err)
	}
	a := &acquisition{retrier: r, caller: ctx, ctx: ctx, req: req}
	if req.NoWait {
		lock, err := a.send()
		if err != nil {
			return nil, wrap(req, err)
		}
		return lock, nil
	}
	if req.MaxWait > 0 {
		bounded, cancel := context.WithTimeoutCause(ctx, req.MaxWait, locker.ErrMaxWait)
		defer cancel()
		a.ctx, a.req.MaxWait = bounded, 0
	}
	a.start = time.Now()
	if a.resuming() {
		return a.repeat(false) // outside the queue
	}
	return a.acquire()
}

func (r *retrier) check(ctx context.Context, req locker.Request) error {
	switch {
	case ctx == nil:
		return driver.Invalid("Acquire ctx", "nil", "a context; context.Background() where there is none")
	case r.inner == nil:
		return driver.Invalid("Locker that retry wraps", "nil", "a Locker")
	}
	if err := req.Validate(); err != nil {
		return err
	}
	return ended(ctx, ctx)
}

// acquisition is one Acquire while it lasts. It belongs to one goroutine.
type acquisition struct {
	*retrier
	caller context.Context //nolint:containedctx // it lives as long as the call
	ctx    context.Context //nolint:containedctx // caller, bounded by MaxWait
	req    locker.Request
	start  time.Time
	place  *waiter // in the queue; nil for what does not queue, and before

	waiting bool // ctx says so

	attempts int
	fastest  time.Duration // attempt so far
	last     outcome       // of the latest attempt that had one
	policy   backoff.BackOff
	pollAt   time.Time // the end of the policy's pause
}

// acquire waits for its turn and tries until an attempt is final.
func (a *acquisition) acquire() (lock *locker.Lock, err error) {
	var first bool
	a.place, first = a.queues.enter(a.req.Name, a.req.Mode == locker.Shared)
	defer func() { a.place.leave(lock != nil) }()
	if !first {
		if a.owned() {
			var again bool
			if lock, again, err = a.tryEarly(); !again {
				return lock, err
			}
		}
		if err := a.awaitTurn(); err != nil {
			return nil, err
		}
	}
	return a.repeat(false)
}

// repeat tries until an attempt is final. after tells that one was just made.
func (a *acquisition) repeat(after bool) (lock *locker.Lock, err error) {
	for again := after; ; {
		if again {
			if err := a.pause(); err != nil {
				return nil, err
			}
		}
		if lock, again, err = a.try(); !again {
			return lock, err
		}
	}
}

func (a *acquisition) owned() bool {
	if a.req.Owner != "" {
		return true
	}
	_, ok := locker.OwnerFrom(a.ctx, a.req.Name)
	return ok
}

// try makes one attempt. Where it is not final, again is true.
func (a *acquisition) try() (lock *locker.Lock, again bool, err error) {
	sent := time.Now()
	a.attempts++
	lock, failed := a.send()
	if failed == nil {
		return lock, false, nil
	}
	now := time.Now()
	if took := now.Sub(sent); a.fastest == 0 || took < a.fastest {
		a.fastest = took
	}
	err = a.judge(failed, now)
	return nil, err == nil, err
}

// tryEarly is try for one that has to queue then, if its owner does not hold the lock already: until its turn comes it must
// not keep those ahead from the lock.
func (a *acquisition) tryEarly() (lock *locker.Lock, again bool, err error) {
	ctx, req := a.ctx, a.req
	a.ctx, a.req.NoWait = locker.WithoutWaiting(ctx), true
	lock, again, err = a.try()
	if a.req = req; !a.waiting {
		a.ctx = ctx
	}
	return lock, again, err
}

// send passes the request on. The Lock that comes of it will tell the queue of its release.
func (a *acquisition) send() (*locker.Lock, error) {
	lock, err := a.inner.Acquire(a.ctx, a.req)
	if err == nil {
		a.queues.hearOf(lock)
	}
	return lock, err
}

// judge takes in what became of an attempt. An error is final; nil: try again.
func (a *acquisition) judge(err error, now time.Time) error {
	over := a.ctx.Err() != nil
	held := contention(a.req.Name, err)
	switch {
	case a.lasting(err, held != nil):
		return wrap(a.req, err)
	case held != nil:
		a.know(outcome{held: held, at: now})
		a.waits()
	case over && cutOff(a.ctx, err):
		// It has no outcome of its own: what was known stands.
	case over:
		a.last = outcome{err: bare(err), at: now} // our ctx had a part in it: it says nothing to those behind
	default:
		a.know(outcome{err: bare(err), at: now})
		if a.cfg.FailFast || a.resuming() && !safe(err) {
			return wrap(a.req, err)
		}
	}
	switch {
	case over:
		return a.giveUp(ended(a.ctx, a.caller))
	case a.attempts == a.cfg.MaxAttempts:
		return a.giveUp(errMaxAttempts)
	}
	return a.pace(now)
}

// lasting tells whether err is an answer that another attempt would only repeat. An acquire that lost its lock before it
// had it may try again; a resume may not.
func (a *acquisition) lasting(err error, refused bool) bool {
	notHeld := errors.Is(err, locker.ErrNotHeld)
	if a.resuming() {
		return refused || notHeld || !driver.Passing(err)
	}
	return !refused && !notHeld && !driver.Passing(err)
}

// waits tells the strategy, from the next attempt on, that this acquisition goes on waiting.
func (a *acquisition) waits() {
	if !a.waiting {
		a.waiting, a.ctx = true, locker.WithWaiting(a.ctx, a.start)
	}
}

func (a *acquisition) resuming() bool { return !a.req.Resume.IsZero() }

// know keeps an outcome, also for those who wait behind.
func (a *acquisition) know(o outcome) {
	a.last = o
	if a.place != nil {
		a.place.record(o)
	}
}

// pace asks the policy for the next pause, unless the present one is not over.
func (a *acquisition) pace(now time.Time) error {
	if a.policy == nil {
		if a.policy = a.cfg.Policy(); a.policy == nil {
			return wrap(a.req, driver.Invalid("retry.Config.Policy", "it returned nil", "a function that returns a backoff.BackOff"))
		}
		a.policy.Reset()
	}
	if now.Before(a.pollAt) {
		return nil
	}
	pause := a.policy.NextBackOff()
	if pause < 0 {
		return a.giveUp(errPolicy)
	}
	a.pollAt = now.Add(pause)
	return nil
}
