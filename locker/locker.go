package locker

import (
	"context"
	"fmt"
	"slices"

	"github.com/holdfast-go/holdfast/internal/argument"
	"github.com/holdfast-go/holdfast/locker/lease"
)

// Mode says how a lock is held. Its String is "exclusive" or "shared".
type Mode = lease.Mode

const (
	// Exclusive: one holder. The zero Mode.
	Exclusive Mode = iota
	// Shared: any number of shared holders and no exclusive one. A strategy without it returns
	// errors.ErrUnsupported.
	Shared
)

// Locker acquires locks. It is safe for concurrent use. The interface is frozen: it will not grow.
type Locker interface {
	// Acquire returns a held lock or an error, never both. A bare strategy makes one attempt;
	// middleware/retry adds waiting. ctx bounds the call, never the hold.
	//
	// Errors: ErrNotAcquired (held by another), ErrNested, ErrMaxWait, ErrUnknownOutcome, ErrLost (the
	// answer came after the Deadline), ErrNotReplicated, ErrInvalid, ErrClosed, ErrNotHeld
	// (Request.Resume), errors.ErrUnsupported, ctx's own, and the client's; each in one *OpError.
	Acquire(ctx context.Context, req Request) (*Lock, error)
}

// Func is a function as a Locker.
type Func func(context.Context, Request) (*Lock, error)

// Acquire calls f.
func (f Func) Acquire(ctx context.Context, req Request) (*Lock, error) { return f(ctx, req) }

// Middleware wraps a Locker: it adds waiting, tracing or renewal.
type Middleware func(Locker) Locker

// Chain wraps l in middleware. The first one is the outermost: Chain(l, tracing, retry) traces an
// acquire with all its attempts, Chain(l, retry, tracing) each attempt. If one of them is nil,
// every acquire fails with an ErrInvalid that has its index.
func Chain(l Locker, outermostFirst ...Middleware) Locker {
	for i, m := range slices.Backward(outermostFirst) {
		if m == nil {
			m = invalidMiddleware(i)
		}
		l = m(l)
	}
	return l
}

// invalidMiddleware stands for the nil middleware at index in a Chain.
func invalidMiddleware(index int) Middleware {
	return func(Locker) Locker {
		return Func(func(_ context.Context, req Request) (*Lock, error) {
			what := fmt.Sprintf("Chain middleware %d", index)
			return nil, opError("acquire", req.Name, argument.Invalid(what, "nil", "a Middleware"))
		})
	}
}

// Must returns v, or panics if err is not nil. It is for constructors with constant arguments.
func Must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
