package telemetry

import (
	"context"
	"errors"
	"slices"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
)

// Outcome is the outcome of an acquisition, a renewal or a hold, in a word of low cardinality.
type Outcome string

// The outcomes. Those of an acquisition are Acquired to Error, those of a renewal Renewed, Lost,
// Unknown and Error, those of a hold Released, Lost, Unknown and Error.
const (
	Acquired  Outcome = "acquired"
	Held      Outcome = "held"      // refused: another holds the lock
	Nested    Outcome = "nested"    // refused: the caller's own call chain holds the lock
	Timeout   Outcome = "timeout"   // MaxWait or ctx's deadline ended the waiting
	Cancelled Outcome = "cancelled" // the caller ended the waiting
	Unknown   Outcome = "unknown"   // the answer did not come and could not be found out
	Error     Outcome = "error"

	Renewed  Outcome = "renewed"
	Released Outcome = "released"
	Lost     Outcome = "lost" // the hold ended without being released
)

// Failed reports whether o is an error. A refusal, a timed-out wait and a cancellation are not,
// unless the caller itself held the lock.
func (o Outcome) Failed() bool { return o == Unknown || o == Error || o == Lost || o == Nested }

// OfAcquire is the outcome of an acquire under ctx with the error err. An attempt cut off by its
// own bound, while ctx lasts, is an error: nobody called it off. So is a wait that ended without a
// connection to the server.
func OfAcquire(ctx context.Context, err error) Outcome {
	switch {
	case err == nil:
		return Acquired
	case errors.Is(err, locker.ErrNested):
		return Nested
	case errors.Is(err, locker.ErrUnknownOutcome):
		return Unknown
	case errors.Is(err, locker.ErrNotAcquired):
	case ctx.Err() == nil && !errors.Is(err, locker.ErrMaxWait), !onlyEnded(err, context.Cause(ctx)):
		return Error
	}
	switch {
	case errors.Is(err, locker.ErrMaxWait), errors.Is(err, context.DeadlineExceeded):
		if errors.Is(err, driver.ErrNotSent) && !errors.Is(err, locker.ErrNotAcquired) {
			return Error
		}
		return Timeout
	case errors.Is(err, context.Canceled):
		return Cancelled
	default:
		return Held
	}
}

// OfRenew is the outcome of a renewal.
func OfRenew(err error) Outcome { return of(Renewed, err) }

// Overtaken reports whether a renewal came to nothing because the lock was released. It is no
// failure: a watchdog's renewal may be under way then.
func Overtaken(err error) bool { return errors.Is(err, locker.ErrReleased) }

// OfRelease is the outcome of a release, and with it of the hold.
func OfRelease(err error) Outcome { return of(Released, err) }

func of(success Outcome, err error) Outcome {
	switch {
	case err == nil:
		return success
	case errors.Is(err, locker.ErrLost):
		return Lost
	case errors.Is(err, locker.ErrUnknownOutcome):
		return Unknown
	default:
		return Error
	}
}

// onlyEnded reports whether every leaf of err's tree is the end of a wait, by MaxWait, ctx or ctx's
// cause.
func onlyEnded(err, cause error) bool {
	switch e := err.(type) { //nolint:errorlint // it walks the tree
	case interface{ Unwrap() error }:
		if inner := e.Unwrap(); inner != nil {
			return onlyEnded(inner, cause)
		}
	case interface{ Unwrap() []error }:
		for _, part := range e.Unwrap() {
			if !onlyEnded(part, cause) {
				return false
			}
		}
		return true
	}
	return slices.Contains([]error{locker.ErrMaxWait, context.Canceled, context.DeadlineExceeded}, err) ||
		cause != nil && errors.Is(cause, err)
}
