package retry

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/holdfast-go/holdfast/internal/argument"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/lease"
)

// retrier is a Locker that waits; inner makes the attempts.
type retrier struct {
	inner  locker.Locker
	cfg    Config
	queues *queues
}

// Unwrap returns the wrapped Locker.
func (r *retrier) Unwrap() locker.Locker { return r.inner }

// Acquire implements locker.Locker.
func (r *retrier) Acquire(ctx context.Context, req locker.Request) (*locker.Lock, error) {
	if err := r.check(ctx, req); err != nil {
		return nil, wrap(req, err)
	}
	a := &acquisition{retrier: r, caller: ctx, ctx: ctx, req: req, start: time.Now()}
	if req.MaxWait > 0 {
		bounded, cancel := context.WithTimeoutCause(ctx, req.MaxWait, locker.ErrMaxWait)
		defer cancel()
		a.ctx = bounded
		if !req.NoWait { // else it bounds the one attempt
			a.req.MaxWait = 0
		}
	}
	switch {
	case req.NoWait:
		return a.once()
	case a.resuming():
		return a.outsideQueue()
	default:
		return a.inQueue(a.start)
	}
}

func (r *retrier) check(ctx context.Context, req locker.Request) error {
	switch {
	case ctx == nil:
		return argument.NilContext("Acquire ctx")
	case r.inner == nil:
		return argument.Invalid("Locker that retry wraps", "nil", "a Locker")
	}
	if err := req.Validate(); err != nil {
		return err
	}
	return ended(ctx, ctx)
}

// acquisition is one running Acquire. It belongs to one goroutine.
type acquisition struct {
	*retrier
	caller context.Context //nolint:containedctx // it lives as long as the call
	ctx    context.Context //nolint:containedctx // caller, bounded by MaxWait
	req    locker.Request
	start  time.Time
	waiter *waiter // in the queue; nil: not queued
	ahead  int     // number of waiters ahead at entry

	announced bool      // attempts carry a lease.Waiting
	waitBegan time.Time // of the traced wait; zero: none

	attempts     int
	attemptBegan time.Time // the latest
	history      history   // of the attempts
	last         outcome   // latest own outcome
	policy       backoff.BackOff
	pollAt       time.Time  // the end of the policy's pause
	ownerCheck   ownerCheck // of a waiter behind the leader
}

// inQueue acquires in its turn, or before it if its owner holds the lock. It enters the queue at now.
func (a *acquisition) inQueue(now time.Time) (*locker.Lock, error) {
	a.attemptBegan = now
	outer, waited := lease.WaitingFrom(a.ctx)
	if waited = waited && outer.ID == "" && !outer.Quorum; waited { // it waited before it came here
		a.start = outer.Since
	}
	w, ahead, listens := a.queues.enter(request{a.req.Name, a.start, a.req.Mode == locker.Shared, a.owner()}, now)
	a.waiter, a.ahead, a.announced = w, ahead, waited || listens // listens: the name was contended a moment ago
	defer w.leave()
	if ahead > 0 && a.queues.reenters && w.owner != "" {
		a.ownerCheck = w.planOwnerCheck(now)
	}
	step, entered := send, true
	for ; ; entered, now = false, time.Now() {
		if ahead > 0 || !entered {
			var err error
			if step, err = a.await(now, entered); err != nil {
				return nil, err
			}
		}
		if step == sendOutside {
			w.leave()
			a.waiter = nil
			return a.outsideQueue()
		}
		lock, again, err := a.try(step == sendEarly)
		if !again {
			return lock, err
		}
	}
}

// outsideQueue makes attempts outside the queue until one is final. A request that is nested in no hold
// any more enters the queue.
func (a *acquisition) outsideQueue() (*locker.Lock, error) {
	for {
		a.attemptBegan = time.Now()
		lock, again, err := a.try(false)
		if again && !a.resuming() && a.enclosingHold() == nil {
			return a.inQueue(time.Now())
		}
		if again {
			err = a.pause()
		}
		if !again || err != nil {
			return lock, err
		}
	}
}

// once makes the one attempt of a NoWait request.
func (a *acquisition) once() (*locker.Lock, error) {
	if w, _ := lease.WaitingFrom(a.ctx); w.Behind && a.queues.hasWaiters(a.req.Name) {
		return nil, opError(a.req, fmt.Errorf("%w: others of this process wait for it", locker.ErrNotAcquired))
	}
	a.attempts++
	lock, err := a.send(a.ctx, a.req)
	if err == nil {
		return lock, nil
	}
	held := contention(a.req.Name, err)
	if held != nil {
		if nested := a.nestedError(held); nested != nil {
			return nil, nested
		}
	}
	if a.ctx.Err() == nil || held != nil || !driver.Transient(err) {
		return nil, wrap(a.req, err)
	}
	a.history, a.last = a.history.add(err, false, a.start), outcome{err: bare(err), at: time.Now()}
	return nil, a.giveUp(ended(a.ctx, a.caller))
}

// owner returns the requested owner, or "".
func (a *acquisition) owner() string {
	if a.req.Owner != "" {
		return a.req.Owner
	}
	owner, _ := lease.OwnerFrom(a.ctx, a.req.Name)
	return owner
}

// try makes one attempt; again: it is not final. early: the request's owner holds the lock. A refused
// early attempt must leave no place at the server: the waiters ahead could not get the lock.
func (a *acquisition) try(early bool) (lock *locker.Lock, again bool, err error) {
	ctx, req := a.attemptContext(early), a.req
	req.NoWait = early || req.NoWait
	a.attempts++
	lock, failed := a.send(ctx, req)
	if failed == nil {
		return lock, false, nil
	}
	now := time.Now()
	err = a.judge(failed, now.Sub(a.attemptBegan), now)
	if early && err == nil && a.last.held == nil {
		a.ownerCheck = ownerCheck{a.pollAt, now}
	}
	return nil, err == nil, err
}

// send passes the request on. The release of the returned Lock wakes the queue.
func (a *acquisition) send(ctx context.Context, req locker.Request) (*locker.Lock, error) {
	lock, err := a.inner.Acquire(ctx, req)
	if err != nil || lock == nil {
		return lock, err
	}
	alone := a.wakeOnRelease(lock)
	if a.waiter != nil {
		a.waiter.leaveAcquired(lock, a.req.Note, alone)
	} else {
		a.queues.acquiredOutsideQueue(lock, a.req.Note, alone)
	}
	return lock, nil
}

// judge processes the error of an attempt of duration took. It returns the acquire's error, or nil to
// try again.
func (a *acquisition) judge(err error, took time.Duration, now time.Time) error {
	over := a.expired(now)
	held := contention(a.req.Name, err)
	a.history = a.history.add(err, held != nil, now.Add(-took))
	switch {
	case a.permanent(err, held != nil):
		if _, answered := errors.AsType[*driver.ServerError](err); answered && a.waiter != nil {
			a.waiter.recordAnswer(now)
		}
		return wrap(a.req, a.history.report(outcome{err: err}, now))
	case held != nil:
		a.setOutcome(outcome{held: held, at: now}, took)
		a.announced = true
		if nested := a.nestedError(held); nested != nil {
			return nested
		}
	case over:
		return a.cutOffError(err, now)
	default:
		a.setOutcome(outcome{err: bare(err), at: now}, took)
		if a.cfg.FailFast || a.resuming() && !nothingRan(err) {
			return wrap(a.req, a.history.report(outcome{err: err}, now))
		}
	}
	switch {
	case over:
		return a.giveUpWith(a.last, outcome{}, a.awaitEnd())
	case a.attempts == a.cfg.MaxAttempts:
		return a.giveUp(errMaxAttempts)
	}
	return a.planPause(now)
}

// cutOffError returns the acquire's error after an attempt failed with err at the end of time. err is
// not recorded for others: this acquire's ctx caused it.
func (a *acquisition) cutOffError(err error, now time.Time) error {
	known := a.known(now) // while a is in the queue
	why := a.awaitEnd()
	var before outcome
	if ended, cause := a.ctx.Err(), context.Cause(a.ctx); replaces(known, err, ended, cause) {
		if consistsOf(err, ended, cause) && known.err != nil {
			before = known
		}
		known = outcome{err: bare(err), at: now}
	}
	return a.giveUpWith(known, before, why)
}

// expired reports whether ctx has ended or its deadline has passed, even if ctx's timer is late.
func (a *acquisition) expired(now time.Time) bool {
	end, bounded := a.ctx.Deadline()
	return a.ctx.Err() != nil || bounded && !now.Before(end)
}

// permanent reports whether another attempt would only repeat err. After ErrNotHeld, a lock lost before
// Acquire returned, an acquire may try again; a resume may not.
func (a *acquisition) permanent(err error, refused bool) bool {
	notHeld := errors.Is(err, locker.ErrNotHeld)
	if errors.Is(err, locker.ErrNested) {
		return true
	}
	if a.resuming() {
		return refused || notHeld || !driver.Transient(err)
	}
	return !refused && !notHeld && !driver.Transient(err)
}

// attemptContext returns the ctx of an attempt, with a lease.Waiting for the strategy once the acquisition
// waits in the queue.
func (a *acquisition) attemptContext(early bool) context.Context {
	switch {
	case early:
		return lease.WithWaiting(a.ctx, lease.Waiting{})
	case !a.announced || a.waiter == nil:
		return a.ctx
	}
	until, _ := a.ctx.Deadline()
	return lease.WithWaiting(a.ctx, a.waiter.waiting(until))
}

func (a *acquisition) resuming() bool { return !a.req.Resume.IsZero() }

// setOutcome stores the outcome of an attempt of duration took, also for the queue.
func (a *acquisition) setOutcome(o outcome, took time.Duration) {
	a.last = o
	if a.waiter != nil {
		a.waiter.recordOutcome(o, took)
	}
}

// known returns the outage of the queue if there is one, else the latest known outcome, its own or
// another's.
func (a *acquisition) known(now time.Time) outcome {
	if a.waiter == nil {
		return a.last
	}
	v := a.waiter.currentView()
	known := v.latest(a.last, a.history, a.ahead, now)
	known = a.orOutage(known, v.answers.outage(known, now), now)
	known.others = known.at != a.last.at
	return known
}

// orOutage returns known, or the silence as an outcome if outage is not zero.
func (r *retrier) orOutage(known outcome, outage time.Duration, now time.Time) outcome {
	if outage > 0 {
		known = outcome{err: &silenceError{r.server(known), outage, known, now}, at: now}
	}
	return known
}

// server returns the address of the wrapped Locker's server, or of all servers of a quorum, or else of
// the server in known; "" if unknown. The one in known may be a healthy node of a silent quorum.
func (r *retrier) server(known outcome) string {
	address := lease.TraitsOf(r.inner).Source.Address
	if address == "" && known.held != nil && !known.held.Channel.IsZero() {
		address = known.held.Channel.Info().Address
	}
	return address
}

// planPause asks the policy for the next pause once the present one is over.
func (a *acquisition) planPause(now time.Time) error {
	if a.policy == nil {
		if a.policy = a.cfg.newPolicy(); a.policy == nil {
			return wrap(a.req, argument.Invalid("retry.Config.Policy", "it returned nil",
				"a function that returns a backoff.BackOff"))
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
