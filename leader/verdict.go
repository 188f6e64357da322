package leader

import (
	"context"
	"errors"

	"github.com/cenkalti/backoff/v4"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
)

// Permanent marks an error of Lead: Run steps down and returns err, and does not campaign again.
// nil stays nil. It is backoff.Permanent of github.com/cenkalti/backoff/v4, and Lead may return
// that too. Run treats backoff.Permanent of another module or version, such as v5, like any other
// error.
func Permanent(err error) error { return backoff.Permanent(err) }

// verdict is Run's next step: campaign again after a pause, or return err. If it campaigns again,
// err is the cause of the pause.
type verdict struct {
	again bool
	err   error
}

// afterAcquire returns the verdict after an acquire failed with err. stopped reports whether the
// ctx of Run has ended.
func afterAcquire(stopped bool, err error) verdict {
	if stopped {
		return verdict{}
	}
	return verdict{driver.Transient(err), err}
}

// outcome is how a term ended.
type outcome struct {
	stopped bool  // the ctx of Run has ended
	lead    error // Lead's result
	ctxErr  bool  // lead only reports the end of its ctx
	lost    error // how the lock had ended when Lead returned; nil: it was held
	release error // the release's result
}

// afterTerm returns the verdict after a term, as Config.Lead documents it.
func afterTerm(o outcome) verdict {
	if permanent, ok := errors.AsType[*backoff.PermanentError](o.lead); ok {
		return verdict{err: join(permanent.Err, o.release)}
	}
	if o.ctxErr {
		o.lead = nil
	}
	switch {
	case o.stopped:
		return verdict{err: join(o.lead, o.release)}
	case errors.Is(o.lost, locker.ErrLost):
		return verdict{true, join(o.lead, o.release)}
	default:
		return verdict{o.lead != nil, join(o.lead, o.release)}
	}
}

// isContextErr reports whether Lead's error err only reports the end of its ctx.
func isContextErr(ctx context.Context, err error) bool {
	return ctx.Err() != nil && (errors.Is(err, ctx.Err()) || errors.Is(err, context.Cause(ctx)))
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
