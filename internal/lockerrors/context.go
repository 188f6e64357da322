package lockerrors

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-go/holdfast/locker/driver"
)

// ContextErr is lease.ContextErr.
func ContextErr(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	switch {
	case err == nil || errors.Is(err, cause):
		return err
	case aboutAnother(cause):
		return fmt.Errorf("%w: %v", err, cause) //nolint:errorlint // it must not match
	default:
		return &endedError{err, cause}
	}
}

// endedError is the error of a context with a cause of its own. It matches both.
type endedError struct{ err, cause error }

func (e *endedError) Error() string   { return e.err.Error() + ": " + e.cause.Error() }
func (e *endedError) Unwrap() []error { return []error{e.err, e.cause} }

// aboutAnother reports whether cause, the cause of a context, is the outcome of a lock or of a
// command. ErrMaxWait itself does not: it is how Request.MaxWait ends a context.
func aboutAnother(cause error) bool {
	for _, outcome := range []error{ErrNotAcquired, ErrNotHeld, ErrUnknownOutcome, ErrNotReplicated, ErrOperation} {
		if errors.Is(cause, outcome) {
			return true
		}
	}
	return driver.CodeOf(cause) != "" || driver.NotExecuted(cause) || !driver.Transient(cause)
}
