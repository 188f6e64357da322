package keylock

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/internal/argument"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/locker/locktrace"
)

// Locker locks by the scripts of a Spec, through one driver.
type Locker struct {
	drv  driver.Driver
	cfg  Config
	spec *Spec

	keyName string // of a lock's key in errors
}

var (
	_ locker.Locker    = (*Locker)(nil)
	_ locker.Inspector = (*Locker)(nil)
	_ lease.Leaver     = (*Locker)(nil)
)

// New returns a Locker over drv with the scripts of spec. Errors: ErrInvalid.
func New(drv driver.Driver, cfg Config, spec Spec) (*Locker, error) {
	if err := spec.check(); err != nil {
		return nil, err
	}
	if drv == nil {
		return nil, argument.Invalid(spec.Name+".New driver", "nil", "a driver, such as goredis.New returns")
	}
	if err := cfg.check(spec.Name); err != nil {
		return nil, err
	}
	if cfg.Fair && !spec.Queue {
		return nil, argument.Invalid(spec.Name+".Config.Fair", "true", "false: the strategy keeps no queue of waiters")
	}
	return &Locker{drv: drv, cfg: cfg, spec: &spec, keyName: spec.Name + ".Config.Prefix with Request.Name"}, nil
}

// Traits returns lease.Traits by the Spec and the driver.
func (l *Locker) Traits() lease.Traits {
	return lease.Traits{
		Source: l.source(), Permits: l.spec.Permits, Reentrant: l.spec.Reentrant, Ordered: l.spec.Shared, Queue: l.spec.Queue,
	}
}

func (l *Locker) source() locktrace.Source {
	info := l.drv.Info()
	return locktrace.Source{Strategy: l.spec.Name, Client: info.Client, Address: info.Address}
}

// Acquire implements locker.Locker. It makes one attempt to acquire the lock, or, with
// Request.Resume, to take a hold over.
func (l *Locker) Acquire(ctx context.Context, req locker.Request) (*locker.Lock, error) {
	op := "acquire"
	if !req.Resume.IsZero() {
		op = "resume"
	}
	lock, err := l.acquire(ctx, req)
	return lock, opError(op, req.Name, err)
}

func opError(op, name string, err error) error {
	if err == nil {
		return nil
	}
	return &locker.OpError{Op: op, Name: name, Err: err}
}

func (l *Locker) acquire(ctx context.Context, req locker.Request) (lock *locker.Lock, err error) {
	if ctx == nil {
		return nil, argument.NilContext("Acquire ctx")
	}
	if end, bounded := ctx.Deadline(); req.MaxWait > 0 && (!bounded || time.Until(end) > req.MaxWait) {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, req.MaxWait, locker.ErrMaxWait)
		defer cancel()
	}
	req.Owner = l.ownerOf(ctx, req)
	key, err := l.check(ctx, req)
	if err != nil {
		return nil, err
	}
	end, err := l.drv.BeginAcquire()
	if err != nil {
		return nil, err
	}
	defer func() { lease.EndAcquire(ctx, end, lock != nil) }()
	a := l.newAttempt(ctx, key, req)
	if err = a.undoIfClosing(a.describe(a.run(ctx))); err == nil {
		defer func() {
			if lock == nil && err == nil { // a callback of the Trace panicked
				a.cleanUpKnown(a.acquired, a.undoOp())
			}
		}()
	}
	if t := locktrace.From(ctx); t != nil && t.Attempt != nil {
		t.Attempt(ctx, locktrace.AttemptInfo{
			Source: l.source(), Name: req.Name, Mode: req.Mode.String(), Sends: a.sends.N,
			Elapsed: time.Since(a.sends.First), Err: err,
		})
		err = a.undoIfClosing(err) // Close may have begun while Trace.Attempt ran
	}
	if err != nil {
		return nil, err
	}
	return locker.NewLock(ctx, lease.HoldInfo{
		Name: req.Name, Owner: a.owner, Token: a.acquired, Mode: req.Mode, TTL: a.ttl, Deadline: a.deadline,
		Fence: a.fence, MinHold: a.req.MinHold,
	}, a.keyHold), nil
}

// BeginAcquire is driver.Driver.BeginAcquire. middleware/handover calls it for a lock handed over.
func (l *Locker) BeginAcquire() (end func(), err error) { return l.drv.BeginAcquire() }

// OnClose calls f once the driver is being closed. Middleware that waits calls it.
func (l *Locker) OnClose(f func()) (stop func() bool) {
	return context.AfterFunc(l.drv.UntilClose(), f)
}

// ownerOf returns the owner of a new hold: the request's, or the one in ctx, or a random one if the
// scripts store it.
func (l *Locker) ownerOf(ctx context.Context, req locker.Request) string {
	if req.Owner != "" || !req.Resume.IsZero() {
		return req.Owner
	}
	owner, _ := lease.OwnerFrom(ctx, req.Name)
	if owner == "" && l.spec.ParseValue == nil {
		owner = lease.NewToken()
	}
	return owner
}
