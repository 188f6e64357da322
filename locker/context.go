package locker

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-go/holdfast/locker/driver"
)

// ContextErr returns ctx.Err() together with ctx's cause, or nil if ctx has not ended. It is for
// strategies and middleware, as the error of an operation stopped by the end of ctx. The cause
// matches too (errors.Is), unless it is about another lock or command, such as a [*LostError] or
// the error of another acquire. Then only its text is kept, so that it is not taken for the outcome
// of this operation.
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
	for _, outcome := range []error{ErrNotAcquired, ErrNotHeld, ErrUnknownOutcome, ErrNotReplicated} {
		if errors.Is(cause, outcome) {
			return true
		}
	}
	_, operation := errors.AsType[*OpError](cause)
	return operation || driver.CodeOf(cause) != "" || driver.NotExecuted(cause) || !driver.Transient(cause)
}
