package lease

import (
	"context"
	"time"
)

// Waiting describes an acquire that waits. It is the same for all of its attempts.
type Waiting struct {
	// ID identifies the acquire. It is random.
	ID string
	// Since is when the acquire began to wait.
	Since time.Time
	// Until is ctx's deadline. Zero: there is none.
	Until time.Time
}

type waitingKey struct{}

// WithWaiting returns a copy of ctx for the further attempts of an acquire that has waited since
// that time. It is for middleware that repeats attempts. A strategy that orders waiters across
// processes uses it.
func WithWaiting(ctx context.Context, since time.Time) context.Context {
	until, _ := ctx.Deadline()
	return context.WithValue(ctx, waitingKey{}, Waiting{NewToken(), since, until})
}

// WithoutWaiting returns a copy of ctx without a [Waiting], for an attempt that must not take a
// place among the waiters.
func WithoutWaiting(ctx context.Context) context.Context {
	if _, waits := WaitingFrom(ctx); !waits {
		return ctx
	}
	return context.WithValue(ctx, waitingKey{}, nil)
}

// WaitingFrom returns the Waiting that WithWaiting put into ctx, for strategies. ok is false if
// there is none.
func WaitingFrom(ctx context.Context) (w Waiting, ok bool) {
	w, ok = ctx.Value(waitingKey{}).(Waiting)
	return w, ok
}
