package locker

import (
	"context"
	"errors"

	"github.com/holdfast-go/holdfast/locker/driver"
)

// Do acquires a lock, calls fn in the caller's goroutine, and releases the lock when fn returns, panics or calls
// runtime.Goexit. fn's ctx ends with the lock, with ErrLost as its cause; Do still waits for fn. That ctx carries the
// lock's owner for this name, so that what fn does may re-enter a reentrant lock.
//
// The error is the acquire's; or fn's; joined with ErrLost where the lease ended before fn returned, or with
// ErrUnknownOutcome where the release got no answer. A nil error means: fn ran, and held the lock all the while.
func Do(ctx context.Context, l Locker, req Request, fn func(context.Context, *Lock) error) (err error) {
	if l == nil || fn == nil || ctx == nil {
		return opError("acquire", req.Name, driver.Invalid("Do argument", "nil", "a context, a Locker and a function"))
	}
	lock, err := l.Acquire(ctx, req)
	if err != nil {
		return err
	}
	work, cancel := lock.Context(ctx)
	defer cancel()
	var lostBefore error
	defer func() {
		released := lock.Release(ctx)
		if errors.Is(released, ErrReleased) {
			released = nil // fn released it itself
		}
		if lostBefore != nil && !errors.Is(released, ErrLost) {
			released = errors.Join(lostBefore, released)
		}
		err = join(err, released)
	}()
	err = fn(work, lock)
	if ended := lock.Err(); errors.Is(ended, ErrLost) {
		lostBefore = opError("release", req.Name, ended)
	}
	return err
}

// join keeps a single error as it is.
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

// Try is Do that does not wait: where the lock is held by another, it returns false and nil. With Request.MaxWait it waits
// that long first. ran tells whether fn was called.
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

// Resume takes over the hold that h names, through the whole chain. The Lock it was taken from is lost: its token is
// replaced, and its fencing token too if it had one. The lease lasts the handle's TTL from now. ErrNotHeld: it is gone.
func Resume(ctx context.Context, l Locker, h Handle) (*Lock, error) {
	switch {
	case l == nil || ctx == nil:
		return nil, opError("resume", h.Name(), driver.Invalid("Resume argument", "nil", "a context and a Locker"))
	case h.IsZero():
		return nil, opError("resume", "", driver.Invalid("Resume handle", "the zero Handle", "a Handle of a held Lock"))
	}
	return l.Acquire(ctx, Request{Name: h.Name(), Mode: h.Mode(), Fenced: h.Fence() != 0, Resume: h})
}
