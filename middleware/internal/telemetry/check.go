package telemetry

import (
	"context"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
)

// ErrNoReturn is the error of an Acquire that did not return: it panicked, or ended its goroutine.
var ErrNoReturn error = noReturnError{}

type noReturnError struct{}

func (noReturnError) Error() string { return "Acquire panicked, or ended its goroutine" }

// CheckArguments refuses what a middleware cannot pass on.
func CheckArguments(ctx context.Context, middleware string, inner locker.Locker, req locker.Request) error {
	var err error
	switch {
	case ctx == nil:
		err = driver.NilContext("Acquire ctx")
	case inner == nil:
		err = driver.Invalid("Locker that "+middleware+" wraps", "nil", "a Locker")
	default:
		return nil
	}
	op := "acquire"
	if !req.Resume.IsZero() {
		op = "resume"
	}
	return &locker.OpError{Op: op, Name: req.Name, Err: err}
}
