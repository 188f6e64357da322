package lockertest

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/internal/argument"
	"github.com/holdfast-go/holdfast/internal/lockerrors"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/locker/locktrace"
)

// minTTL is the minimum TTL of the strategies over one key.
const minTTL = 3 * time.Millisecond

// Locker is a locker.Locker in memory. It also does what else the strategies over one server do,
// for locker.Inspect, Break and Handle.Release. The zero Locker is ready for use. It is safe for
// concurrent use.
type Locker struct {
	permits int // the limit of a semaphore; 0: a lock

	mu       sync.Mutex
	names    map[string]*tenures
	faults   faults
	outage   Outage
	changed  chan struct{} // closed when outage changes; nil in no outage
	delayed  []func()      // releases to execute after the outage
	calls    []Call
	channels map[string][]*subscription
}

var (
	_ locker.Locker    = (*Locker)(nil)
	_ locker.Inspector = (*Locker)(nil)
)

// New returns a Locker on which nothing is held.
func New() *Locker { return new(Locker) }

// NewSemaphore returns a Locker that grants up to permits permits of each name at a time, as
// strategies/semaphore does. It panics if permits is less than 1.
func NewSemaphore(permits int) *Locker {
	if permits < 1 {
		panic(argument.Invalid("lockertest.NewSemaphore permits", strconv.Itoa(permits), "1 or more"))
	}
	return &Locker{permits: permits}
}

// Traits returns lease.Traits, with the limit of a semaphore.
func (l *Locker) Traits() lease.Traits {
	return lease.Traits{Source: source, Permits: l.permits, Ordered: l.permits == 0, Queue: true}
}

// Acquire implements locker.Locker: one attempt to acquire the lock, or, with Request.Resume, to
// take a hold over. A zero Request.TTL is locker.DefaultTTL, or the handle's.
func (l *Locker) Acquire(ctx context.Context, req locker.Request) (*locker.Lock, error) {
	op := "acquire"
	if !req.Resume.IsZero() {
		op = "resume"
	}
	done := l.record(Call{Op: op, Request: req})
	lock, err := l.acquire(ctx, req)
	done(err)
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
	}
	if err := l.check(ctx, req); err != nil {
		return nil, err
	}
	h, err := l.attempt(ctx, req)
	if t := locktrace.From(ctx); t != nil && t.Attempt != nil {
		t.Attempt(ctx, locktrace.AttemptInfo{Source: source, Name: req.Name, Mode: req.Mode.String(), Sends: 1,
			Err: err})
	}
	if err != nil {
		return nil, err
	}
	return l.lock(ctx, h), nil
}

// attempt acquires the lock, or takes a hold over, unless a failure is due.
func (l *Locker) attempt(ctx context.Context, req locker.Request) (*hold, error) {
	began := time.Now()
	if err := l.reach(ctx, acquireLimit(req)); err != nil {
		return nil, lockerrors.NewAttemptError(address{}.String(), time.Since(began), err)
	}
	defer l.mu.Unlock()
	if err := next(&l.faults.acquire); err != nil {
		return nil, err
	}
	if !req.Resume.IsZero() {
		return l.takeOver(req)
	}
	h, err := l.take(ctx, req)
	if err != nil && !req.NoWait {
		err = fmt.Errorf("%w; one attempt was made, middleware/retry waits", err)
	}
	return h, err
}

// lock makes the Lock of h. h is held already, so Expire may have ended it before there is a Lock.
func (l *Locker) lock(ctx context.Context, h *hold) *locker.Lock {
	lock := locker.NewLock(ctx, h.info(), h)
	l.mu.Lock()
	h.lock = lock.Hold()
	expired := h.expired
	l.mu.Unlock()
	if expired {
		lock.Hold().MarkLost(errExpired)
	}
	return lock
}

// Inspect implements locker.Inspector. Of several shared holds, Owner, Note and Fence are the
// oldest one's, and Left is the longest. Of a semaphore's holds, all are those of the last to end,
// and Fence is 0.
func (l *Locker) Inspect(ctx context.Context, name string) (locker.State, error) {
	state, err := l.inspect(ctx, name)
	if err != nil {
		return locker.State{}, &locker.OpError{Op: "inspect", Name: name, Err: err}
	}
	return state, nil
}

func (l *Locker) inspect(ctx context.Context, name string) (locker.State, error) {
	if err := l.check(ctx, locker.Request{Name: name}); err != nil {
		return locker.State{}, err
	}
	if err := l.reach(ctx, attemptTimeout(locker.DefaultTTL)); err != nil {
		return locker.State{}, known(err)
	}
	defer l.mu.Unlock()
	return l.state(name), nil
}

// ReleaseHandle is for [locker.Handle.Release]. The Lock of the hold learns of it when it renews
// or releases.
func (l *Locker) ReleaseHandle(ctx context.Context, h locker.Handle) error {
	done := l.record(Call{Op: "release", Request: locker.Request{Name: h.Name(), Mode: h.Mode(), Owner: h.Owner()}})
	err := l.releaseHandle(ctx, h)
	done(err)
	if err != nil {
		return &locker.OpError{Op: "release", Name: h.Name(), Err: err}
	}
	return nil
}

func (l *Locker) releaseHandle(ctx context.Context, handle locker.Handle) error {
	uncancelled := ctx
	if ctx != nil {
		uncancelled = context.WithoutCancel(ctx)
	}
	if err := l.check(uncancelled, locker.Request{Name: handle.Name(), Mode: handle.Mode(),
		Resume: handle}); err != nil {
		return err
	}
	g := handle.Info()
	op := lease.Op{Kind: lease.OpRelease}
	if g.MinHold > 0 {
		op.KeepUntil = time.Now().Add(g.MinHold)
	}
	release := func() error {
		h := l.of(g.Name).find(g.Token)
		if h == nil {
			return locker.ErrNotHeld
		}
		h.end(op)
		return nil
	}
	if err := l.reachToRelease(ctx, g.TTL); err != nil {
		l.afterOutage(func() { _ = release() })
		return err
	}
	defer l.mu.Unlock()
	if err := next(&l.faults.release); err != nil {
		return err
	}
	return release()
}

// check refuses invalid and unsupported requests, and an ended ctx.
func (l *Locker) check(ctx context.Context, req locker.Request) error {
	if ctx == nil {
		return argument.NilContext("Acquire ctx")
	}
	if err := req.Validate(); err != nil {
		return err
	}
	switch ttl := req.TTL; {
	case req.Mode != locker.Exclusive && l.permits > 0:
		return fmt.Errorf("a semaphore has no %v mode, rwhash does: %w", req.Mode, errors.ErrUnsupported)
	case req.Permits > 1 && l.permits == 0:
		return fmt.Errorf("lockertest.New has no permits, NewSemaphore does: %w", errors.ErrUnsupported)
	case l.permits > 0 && req.Permits > l.permits:
		return argument.Invalid("Request.Permits", strconv.Itoa(req.Permits),
			fmt.Sprintf("1 to %d, the permits of the semaphore", l.permits))
	case ttl != 0 && ttl < minTTL:
		return argument.Invalid("Request.TTL", ttl.String(), "3ms or more, as the strategies over one key ask for")
	}
	return lease.ContextErr(ctx)
}
