package lockertest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/locker/locktrace"
)

// Locker is a locker.Locker and a locker.Inspector in memory. The zero Locker is ready. It is safe
// for concurrent use.
type Locker struct {
	mu     sync.Mutex
	names  map[string]*tenures
	faults faults
}

var (
	_ locker.Locker         = (*Locker)(nil)
	_ locker.Inspector      = (*Locker)(nil)
	_ locker.HandleReleaser = (*Locker)(nil)
	_ locker.Breaker        = (*Locker)(nil)
)

// New returns a Locker on which nothing is held.
func New() *Locker { return new(Locker) }

// Acquire implements locker.Locker: one attempt to take the lock, or, with Request.Resume, to take
// a hold over. A zero Request.TTL is locker.DefaultTTL, or the handle's.
func (l *Locker) Acquire(ctx context.Context, req locker.Request) (*locker.Lock, error) {
	op := "acquire"
	if !req.Resume.IsZero() {
		op = "resume"
	}
	if ctx != nil && req.Owner == "" && req.Resume.IsZero() {
		req.Owner, _ = lease.OwnerFrom(ctx, req.Name)
	}
	if err := check(ctx, req); err != nil {
		return nil, &locker.OpError{Op: op, Name: req.Name, Err: err}
	}
	h, err := l.attempt(req)
	if t := locktrace.From(ctx); t != nil && t.Attempt != nil {
		t.Attempt(ctx, locktrace.AttemptInfo{Source: source, Name: req.Name, Mode: req.Mode.String(), Sends: 1, Err: err})
	}
	if err != nil {
		return nil, &locker.OpError{Op: op, Name: req.Name, Err: err}
	}
	return l.lock(ctx, h), nil
}

// Inspect implements locker.Inspector. Of several shared holders, Owner, Note and Fence are those
// of the one that came first, and Left is that of the one that stays longest.
func (l *Locker) Inspect(ctx context.Context, name string) (locker.State, error) {
	if err := check(ctx, locker.Request{Name: name}); err != nil {
		return locker.State{}, &locker.OpError{Op: "inspect", Name: name, Err: err}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	holds := l.of(name).live()
	if len(holds) == 0 {
		return locker.State{}, nil
	}
	first, n := holds[0], 0
	for _, h := range holds {
		if !h.released {
			n++
		}
	}
	return locker.State{
		Held: true, Owner: first.owner, Note: first.note, Mode: first.mode, Holds: n, Left: time.Until(latest(holds)),
		Fence: first.fence,
	}, nil
}

// ReleaseHandle implements locker.HandleReleaser. The Lock of the hold learns of it when it renews
// or releases.
func (l *Locker) ReleaseHandle(ctx context.Context, h locker.Handle) error {
	err := check(context.WithoutCancel(ctx), locker.Request{Name: h.Name(), Mode: h.Mode(), Resume: h})
	if err == nil {
		err = l.release(ctx, h)
	}
	if err != nil {
		return &locker.OpError{Op: "release", Name: h.Name(), Err: err}
	}
	return nil
}

func (l *Locker) release(ctx context.Context, handle locker.Handle) error {
	g := handle.Grant()
	l.mu.Lock()
	holds := l.of(g.Name).live()
	i := slices.IndexFunc(holds, func(h *hold) bool { return h.token == g.Token })
	l.mu.Unlock()
	if i < 0 {
		return locker.ErrNotHeld
	}
	op := lease.Op{Kind: lease.OpRelease}
	if g.MinHold > 0 {
		op.KeepUntil = time.Now().Add(g.MinHold)
	}
	if _, err := holds[i].Do(ctx, op); !errors.Is(err, locker.ErrLost) {
		return err
	}
	return locker.ErrNotHeld
}

// check refuses what cannot be asked for.
func check(ctx context.Context, req locker.Request) error {
	if ctx == nil {
		return &locker.InvalidError{What: "ctx", Got: "nil", Allowed: "a context; context.Background() where there is none"}
	}
	if err := req.Validate(); err != nil {
		return err
	}
	if req.Permits > 1 {
		return fmt.Errorf("lockertest has no permits, semaphore does: %w", errors.ErrUnsupported)
	}
	return locker.ContextErr(ctx)
}

// attempt takes the lock, or a hold over, unless a failure is due.
func (l *Locker) attempt(req locker.Request) (*hold, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := next(&l.faults.acquire); err != nil {
		return nil, err
	}
	if req.Resume.IsZero() {
		return l.take(req)
	}
	return l.takeOver(req)
}

// lock makes the Lock of h, which is held already: it may be expired before there is a Lock to
// tell.
func (l *Locker) lock(ctx context.Context, h *hold) *locker.Lock {
	lock := locker.NewLock(ctx, h.grant(), h)
	l.mu.Lock()
	h.lock = lock.Hold()
	expired := h.expired
	l.mu.Unlock()
	if expired {
		lock.Hold().MarkLost(errExpired)
	}
	return lock
}
