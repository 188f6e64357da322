package locker

import (
	"cmp"
	"context"
	"errors"

	"github.com/holdfast-go/holdfast/internal/argument"
)

// Do acquires a lock, calls fn in the caller's goroutine, and releases the lock when fn returns,
// panics or calls runtime.Goexit. fn's ctx ends with the lock; if the lock is lost, its cause is a
// [LostError]. Do still waits for fn. The ctx carries the hold and its owner for this name, so that
// fn can re-enter a reentrant lock. With another strategy, an acquire of the same lock under that
// ctx would wait for itself; with middleware/retry it fails with [ErrNested].
//
// A nil error means that fn returned nil, and the lock was held until fn returned or released it.
// If fn releases the lock itself, Do does not report that release's error. Do returns one of:
//   - an [OpError] of Acquire; fn was not called. See [Locker] for its matches. It matches
//     [ErrInvalid] if the Request is invalid, or the locker, ctx or function is nil.
//   - the error of fn, unchanged, also if it has the [LostError] of the lock.
//   - an OpError of the release, joined with fn's error if there is one (errors.Join). It matches
//     [ErrLost] if the lease ended before fn returned or the release found it gone, and
//     [ErrUnknownOutcome] if the release got no answer; the lock is then free at its TTL at the
//     latest. Otherwise it wraps the client's error, for example a missing permission.
func Do(ctx context.Context, l Locker, req Request, fn func(context.Context, *Lock) error) error {
	err := validateCall(ctx, l, "Do")
	if err == nil && fn == nil {
		err = argument.Invalid("Do function", "nil", "a function")
	}
	if err != nil {
		return opError("acquire", req.Name, err)
	}
	lock, err := l.Acquire(ctx, req)
	if err != nil {
		return err
	}
	return doHeld(ctx, lock, fn)
}

// held is a Lock or Locks.
type held interface {
	Context(parent context.Context) (context.Context, context.CancelFunc)
	Release(ctx context.Context) error
	loss() *LostError // nil: none
}

// doHeld calls fn under h, and releases h when fn returns, panics or calls runtime.Goexit.
func doHeld[H held](ctx context.Context, h H, fn func(context.Context, H) error) (err error) {
	work, cancel := h.Context(ctx)
	defer cancel()
	var lostBefore error
	defer func() {
		released := h.Release(ctx)
		if errors.Is(released, ErrReleased) {
			released = nil // fn released h
		}
		if lostBefore != nil && !errors.Is(released, ErrLost) {
			released = join(lostBefore, released)
		}
		if !reportsLoss(err, released) {
			err = join(err, released)
		}
	}()
	err = fn(work, h)
	if loss := h.loss(); loss != nil {
		lostBefore = opError("release", loss.Name, loss)
	}
	return err
}

// reportsLoss reports whether err, from fn, contains the only loss in released.
func reportsLoss(err, released error) bool {
	told, _ := errors.AsType[*LostError](err)
	op, ok := released.(*OpError) //nolint:errorlint // a wrapper, or several joined, says more
	if !ok || told == nil {
		return false
	}
	return op.Err == error(told) //nolint:errorlint // the same
}

// join is errors.Join, but returns a single error unchanged.
func join(a, b error) error {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	default:
		return errors.Join(a, b)
	}
}

// Try is Do without waiting: if the lock is held by another, or by the caller's own call chain
// ([ErrNested]), it returns false and nil. With Request.MaxWait it waits that long for another
// first. ran reports whether fn was called.
func Try(ctx context.Context, l Locker, req Request, fn func(context.Context, *Lock) error) (ran bool, err error) {
	req.NoWait = req.NoWait || req.MaxWait == 0
	wrapped := fn
	if fn != nil {
		wrapped = func(ctx context.Context, lock *Lock) error {
			ran = true
			return fn(ctx, lock)
		}
	}
	err = Do(ctx, l, req, wrapped)
	if !ran && errors.Is(err, ErrNotAcquired) && ctx.Err() == nil {
		return false, nil
	}
	return ran, err
}

// Resume takes over the hold of h, through the whole chain. The Lock of h is lost: its token is
// replaced, and its fencing token too if it had one. The new Lock's Deadline is the handle's TTL
// from now, whatever was left before. Resume never shortens the lease at the server: if more was
// left, for example after a Renew for longer, others stay excluded until then or until a release.
// The error matches ErrNotHeld if the hold no longer exists.
func Resume(ctx context.Context, l Locker, h Handle) (*Lock, error) {
	if err := cmp.Or(validateCall(ctx, l, "Resume"), h.validate("Resume")); err != nil {
		return nil, opError("resume", h.Name(), err)
	}
	return l.Acquire(ctx, Request{Name: h.Name(), Mode: h.Mode(), Fenced: h.Fence() != 0, Resume: h})
}
