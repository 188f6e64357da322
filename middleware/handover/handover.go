package handover

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/locker/locktrace"
)

// acquiring is a strategy over one driver: BeginAcquire is driver.Driver.BeginAcquire.
type acquiring interface {
	BeginAcquire() (end func(), err error)
}

// queueing is middleware whose requests wait in a queue of their process, as those of
// middleware/retry. GaveUp returns the error of a request for name that waited here since began and
// gave up because of why.
type queueing interface {
	GaveUp(name string, began time.Time, why error) error
}

// cohort is a Locker whose requests hand locks over to one another.
type cohort struct {
	inner       locker.Locker
	cfg         Config
	disabled    bool      // nothing is handed over
	serverQueue bool      // the strategy keeps a queue of processes at the server
	acquiring   acquiring // nil: Close of its driver waits for no acquire

	// mu guards the lines, their heirs and tenures. It is held for a few steps, and never while
	// foreign code runs.
	mu      sync.Mutex
	lines   map[string]*line
	closing bool      // the driver is being closed: nothing is handed over
	watch   sync.Once // makes Close set closing
}

// Unwrap returns the wrapped Locker.
func (c *cohort) Unwrap() locker.Locker { return c.inner }

// Acquire implements locker.Locker.
func (c *cohort) Acquire(ctx context.Context, req locker.Request) (*locker.Lock, error) {
	switch {
	case c.inner == nil:
		return nil, opError(req, &locker.InvalidError{What: "Locker that handover wraps", Got: "nil", Allowed: "a Locker"})
	case c.disabled || !inherits(ctx, req):
		return c.acquireBeside(ctx, req)
	}
	a := &acquisition{cohort: c, caller: ctx, req: req, start: time.Now()}
	for {
		if lock, again, err := a.acquire(); !again {
			return lock, err
		}
	}
}

// inherits reports whether a lock may be handed over to req. A request with an owner may hold the
// lock already, and a NoWait request takes no turn.
func inherits(ctx context.Context, req locker.Request) bool {
	if ctx == nil || req.Mode != locker.Exclusive || req.NoWait || req.Owner != "" || req.MinHold != 0 ||
		req.Permits > 1 || !req.Resume.IsZero() {
		return false
	}
	_, owned := lease.OwnerFrom(ctx, req.Name)
	return !owned
}

// acquireBeside acquires from the wrapped Locker, outside the line.
func (c *cohort) acquireBeside(ctx context.Context, req locker.Request) (*locker.Lock, error) {
	if req.NoWait && isBehind(ctx) && c.hasWaiters(req.Name) {
		return nil, opError(req, fmt.Errorf("%w: others of this process wait for it", locker.ErrNotAcquired))
	}
	return c.inner.Acquire(ctx, req)
}

// isBehind reports whether an attempt must not pass the waiters of this process.
func isBehind(ctx context.Context) bool {
	if ctx == nil {
		return false
	}
	w, _ := lease.WaitingFrom(ctx)
	return w.Behind
}

// acquisition is one running Acquire.
type acquisition struct {
	*cohort
	caller context.Context //nolint:containedctx // it lives as long as the call
	req    locker.Request
	start  time.Time
	waited bool
}

// acquire makes one pass through the line. again: the hold was lost before it had a Lock.
func (a *acquisition) acquire() (lock *locker.Lock, again bool, err error) {
	h := a.enter(a.caller, a.req)
	if h == nil {
		lock, err = a.acquireBeside(a.caller, a.request())
		return lock, false, err
	}
	defer a.leave(h)
	if err := a.await(h); err != nil {
		return nil, false, err
	}
	if h.tenure == nil {
		plain, err := a.lead(h)
		if h.tenure == nil {
			return plain, false, err
		}
	} else {
		a.joinCall()
	}
	lock = a.newLock(h)
	return lock, lock == nil, nil
}

// joinCall makes Close of the driver wait for the caller's call for several locks, if the acquire is
// one of such a call.
func (a *acquisition) joinCall() {
	if a.acquiring == nil {
		return
	}
	if end, err := a.acquiring.BeginAcquire(); err == nil {
		lease.EndAcquire(a.caller, end, true)
	}
}

// await waits until the lock is handed over to h, or h has to ask the wrapped Locker.
func (a *acquisition) await(h *heir) error {
	if h.ready == nil {
		return nil
	}
	a.waited = true
	a.watchClose()
	ctx := a.caller
	if a.req.MaxWait > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadlineCause(ctx, a.start.Add(a.req.MaxWait), locker.ErrMaxWait)
		defer cancel()
	}
	began := time.Now()
	a.traceWaiting(h)
	select {
	case <-h.ready:
	case <-ctx.Done():
	}
	if held, gaveUp := a.giveUp(h, ctx.Err() != nil); gaveUp {
		return opError(a.req, a.giveUpError(held, ended(ctx, a.caller)))
	}
	a.traceWoken(h, began)
	return nil
}

// giveUpError returns the error of an acquire ended by why while others were ahead. held describes the
// holder in this process; if it is nil, the queue of the wrapped Locker may know the holder.
func (a *acquisition) giveUpError(held *locker.ContentionError, why error) error {
	if q, ok := lease.Find[queueing](a.inner); ok && held == nil {
		return q.GaveUp(a.req.Name, a.start, why)
	}
	if held == nil {
		held = &locker.ContentionError{Name: a.req.Name}
	}
	return fmt.Errorf("%w; gave up after %v behind others of this process, without an attempt: %w",
		held, time.Since(a.start).Round(time.Millisecond), why)
}

// lead acquires from the wrapped Locker, and begins a tenure of h. A Lock without a Lease, as of a
// test double, begins no tenure: lead returns it as plain. plain is nil in every other case.
func (a *acquisition) lead(h *heir) (plain *locker.Lock, err error) {
	ctx := attemptsOnly(a.caller)
	if a.waited {
		a.pause(time.Until(h.pauseUntil))
		ctx = lease.WithWaiting(ctx, lease.Waiting{Since: a.start})
	}
	lock, err := a.inner.Acquire(ctx, a.request())
	if err != nil || lock == nil || lock.Hold().Lease() == nil {
		return lock, err
	}
	a.beginTenure(h, lock)
	return nil, nil
}

// request returns the request for the wrapped Locker, with the rest of MaxWait.
func (a *acquisition) request() locker.Request {
	req := a.req
	if a.waited && req.MaxWait > 0 {
		req.MaxWait = max(req.MaxWait-time.Since(a.start), 1)
	}
	return req
}

// newLock makes h's Lock of its tenure. It returns nil if the hold was lost meanwhile.
func (a *acquisition) newLock(h *heir) *locker.Lock {
	t := h.tenure
	if t.hold.Err() != nil {
		return nil
	}
	l := &heldLease{tenure: t}
	lock := locker.NewLock(a.caller, lease.HoldInfo{
		Name: a.req.Name, Mode: locker.Exclusive, TTL: t.hold.TTL(), Deadline: t.hold.Deadline(), Fence: h.fence,
	}, l)
	l.hold = lock.Hold()
	a.mu.Lock()
	t.holder, t.note, h.tenure = l.hold, a.req.Note, nil
	lost := !t.ended.IsZero()
	a.mu.Unlock()
	if lost { // the loss found no holder
		l.hold.MarkLost(t.hold.Err())
	}
	return lock
}

// pause waits for d, at most for half of the acquire's time left, or until the caller's ctx ends.
func (a *acquisition) pause(d time.Duration) {
	if end, bounded := a.caller.Deadline(); bounded {
		d = min(d, time.Until(end)/2)
	}
	if a.req.MaxWait > 0 {
		d = min(d, time.Until(a.start.Add(a.req.MaxWait))/2)
	}
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-a.caller.Done():
	}
}

func (a *acquisition) traceWaiting(h *heir) {
	if t := locktrace.From(a.caller); t != nil && t.Waiting != nil {
		t.Waiting(a.caller, locktrace.WaitingInfo{Name: a.req.Name, Mode: a.req.Mode.String(), Queued: h.queued})
	}
}

func (a *acquisition) traceWoken(h *heir, began time.Time) {
	t := locktrace.From(a.caller)
	if t == nil || t.Woken == nil {
		return
	}
	info := locktrace.WokenInfo{Name: a.req.Name, Mode: a.req.Mode.String(), By: locktrace.ByTurn, Waited: time.Since(began)}
	if h.tenure != nil {
		info.By = locktrace.ByHandOver
	}
	if h.from != nil {
		info.From = h.from.Owner()
	}
	t.Woken(a.caller, info)
}

// attemptsOnly returns ctx with its Trace reduced to attempts and waits: a Lock of the wrapped Locker is
// not the caller's.
func attemptsOnly(ctx context.Context) context.Context {
	t := locktrace.From(ctx)
	if t == nil {
		return ctx
	}
	attempts := *t
	attempts.Acquired, attempts.Renewed, attempts.Released, attempts.Lost = nil, nil, nil, nil
	return locktrace.With(locktrace.Without(ctx), &attempts)
}

// ended returns the reason why ctx ended. ctx is caller, or caller bounded by MaxWait.
func ended(ctx, caller context.Context) error {
	if ctx.Err() != nil && caller.Err() == nil {
		return locker.ErrMaxWait
	}
	return lease.ContextErr(caller)
}

func opError(req locker.Request, err error) error {
	return &locker.OpError{Op: "acquire", Name: req.Name, Err: err}
}
