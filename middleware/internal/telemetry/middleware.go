package telemetry

import (
	"context"

	"github.com/holdfast-go/holdfast/internal/argument"
	"github.com/holdfast-go/holdfast/locker"
)

// ErrNoReturn is the error of an Acquire without a return: it panicked, or ended its goroutine.
var ErrNoReturn error = noReturnError{}

type noReturnError struct{}

func (noReturnError) Error() string { return "Acquire panicked, or ended its goroutine" }

// Middleware returns a Middleware of this name. Its Lockers acquire by the function, called with
// the Locker inside.
func Middleware(
	name string, acquire func(ctx context.Context, inner locker.Locker, req locker.Request) (*locker.Lock, error),
) locker.Middleware {
	return func(inner locker.Locker) locker.Locker { return &observed{name, inner, acquire} }
}

// observed is a Locker with observed acquisitions.
type observed struct {
	name    string
	inner   locker.Locker
	acquire func(context.Context, locker.Locker, locker.Request) (*locker.Lock, error)
}

// Unwrap returns the observed Locker.
func (o *observed) Unwrap() locker.Locker { return o.inner }

// Acquire implements locker.Locker. It refuses a nil ctx and a nil Locker.
func (o *observed) Acquire(ctx context.Context, req locker.Request) (*locker.Lock, error) {
	var err error
	switch {
	case ctx == nil:
		err = argument.NilContext("Acquire ctx")
	case o.inner == nil:
		err = argument.Invalid("Locker that "+o.name+" wraps", "nil", "a Locker")
	default:
		return o.acquire(ctx, o.inner, req)
	}
	op := "acquire"
	if !req.Resume.IsZero() {
		op = "resume"
	}
	return nil, &locker.OpError{Op: op, Name: req.Name, Err: err}
}
