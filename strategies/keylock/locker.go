package keylock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/locker/locktrace"
	"github.com/holdfast-go/holdfast/strategies/keylock/internal/resolve"
)

// Locker locks in one layout over one driver. It implements locker.Locker.
type Locker struct {
	drv    driver.Driver
	cfg    Config
	layout *Layout
}

// New returns a Locker that locks through drv. Errors: ErrInvalid; errors.ErrUnsupported for MinReplicas with a driver that
// has no driver.Acknowledger.
func New(drv driver.Driver, cfg Config, layout *Layout) (*Locker, error) {
	if drv == nil {
		return nil, driver.Invalid(layout.Strategy+".New driver", "nil", "a driver, such as goredis.New returns")
	}
	if err := cfg.validate(layout.Strategy); err != nil {
		return nil, err
	}
	if _, ok := drv.(driver.Acknowledger); cfg.MinReplicas > 0 && !ok {
		return nil, fmt.Errorf("%s.Config.MinReplicas is %d, but the driver (%s) cannot wait for replicas: %w",
			layout.Strategy, cfg.MinReplicas, cmp.Or(drv.Info().Client, fmt.Sprintf("%T", drv)), errors.ErrUnsupported)
	}
	return &Locker{drv: drv, cfg: cfg, layout: layout}, nil
}

// Source implements lease.Sourced.
func (l *Locker) Source() locktrace.Source {
	info := l.drv.Info()
	return locktrace.Source{Strategy: l.layout.Strategy, Client: info.Client, Address: info.Address}
}

// Acquire implements locker.Locker: one attempt to take the lock, or, with Request.Resume, to take a hold over.
func (l *Locker) Acquire(ctx context.Context, req locker.Request) (*locker.Lock, error) {
	op := "acquire"
	if !req.Resume.IsZero() {
		op = "resume"
	}
	lock, err := l.acquire(ctx, req)
	if err != nil {
		return nil, &locker.OpError{Op: op, Name: req.Name, Err: err}
	}
	return lock, nil
}

func (l *Locker) acquire(ctx context.Context, req locker.Request) (*locker.Lock, error) {
	if ctx != nil && req.MaxWait > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, req.MaxWait, locker.ErrMaxWait)
		defer cancel()
	}
	if ctx != nil && req.Owner == "" && req.Resume.IsZero() {
		req.Owner, _ = lease.OwnerFrom(ctx, req.Name)
		if req.Owner == "" && l.layout.SendHolder {
			req.Owner = lease.NewToken()
		}
	}
	key, err := l.check(ctx, req)
	if err != nil {
		return nil, err
	}
	drainer, drains := l.drv.(driver.Drainer)
	if drains {
		if err := drainer.BeginAcquire(); err != nil {
			return nil, err
		}
		defer drainer.EndAcquire()
	}
	a := l.newAttempt(key, req)
	a.sends.Drainer = drainer
	if _, bounded := ctx.Deadline(); req.NoWait && !bounded {
		a.sends.Limit = a.timeout
	}
	err = a.undoIfClosing(a.failed(a.run(ctx, req)))
	if t := locktrace.From(ctx); t != nil && t.Attempt != nil {
		t.Attempt(ctx, locktrace.AttemptInfo{
			Source: a.Source(), Name: req.Name, Mode: req.Mode.String(), Sends: a.sent, Elapsed: time.Since(a.sends.First), Err: err,
		})
	}
	if err != nil {
		return nil, err
	}
	if err := a.undoIfClosing(nil); err != nil { // Close began while Trace.Attempt ran
		return nil, err
	}
	return locker.NewLock(ctx, a.grant(), a.hold), nil
}

// Inspect runs a script that reads the lock of a name. Its key is the only one.
func (l *Locker) Inspect(ctx context.Context, name string, script *driver.Script, read func(key string, r driver.Reply) (locker.State, error)) (locker.State, error) {
	state, err := l.inspect(ctx, name, script, read)
	if err != nil {
		return locker.State{}, &locker.OpError{Op: "inspect", Name: name, Err: err}
	}
	return state, nil
}

func (l *Locker) inspect(ctx context.Context, name string, script *driver.Script, read func(key string, r driver.Reply) (locker.State, error)) (locker.State, error) {
	key, err := l.check(ctx, locker.Request{Name: name})
	if err != nil {
		return locker.State{}, err
	}
	bound := driver.Bound(ctx, l.cfg.attemptTimeout(l.cfg.ttl(0)))
	defer bound.Stop()
	reply, err := l.drv.Eval(bound, script, []string{key}, nil)
	if err != nil {
		return locker.State{}, err
	}
	return read(key, reply)
}

// check refuses what cannot be asked for, and returns the key.
func (l *Locker) check(ctx context.Context, req locker.Request) (key string, err error) {
	if ctx == nil {
		return "", driver.Invalid("Acquire ctx", "nil", "a context; context.Background() where there is none")
	}
	if err := req.Validate(); err != nil {
		return "", err
	}
	if l.layout.CheckResume != nil && !req.Resume.IsZero() {
		if err := l.layout.CheckResume(req); err != nil {
			return "", err
		}
	}
	if req.Mode != locker.Exclusive && !l.layout.Shared {
		return "", fmt.Errorf("%s has no %v mode, rwhash does: %w", l.layout.Strategy, req.Mode, errors.ErrUnsupported)
	}
	ttl := cmp.Or(req.TTL, req.Resume.Grant().TTL)
	if ttl != 0 && ttl < minTTL {
		return "", driver.Invalid("Request.TTL", ttl.String(), "3ms or more: the allowance for drift uses up a shorter lease")
	}
	if attempt := l.cfg.attemptTimeout(l.cfg.ttl(ttl)); !l.cfg.fits(attempt) {
		return "", driver.Invalid("Request.TTL", ttl.String(), fmt.Sprintf("one whose attempts take longer than the replicas have: %v of %v",
			l.cfg.replicaTimeout(attempt), attempt))
	}
	if key, err = l.key(req.Name); err != nil {
		return "", err
	}
	return key, resolve.Ended(ctx)
}

func (l *Locker) key(name string) (string, error) {
	key := l.cfg.Prefix + name
	if !driver.HasSibling(key) {
		return "", driver.Invalid(l.layout.Strategy+".Config.Prefix with Request.Name", fmt.Sprintf("%.64q", key),
			`a key whose slot another key can share: one with a hash tag "{...}" that is not empty, or without any "}"`)
	}
	return key, nil
}
