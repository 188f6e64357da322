package lease

import (
	"context"
	"time"
)

// Waiting tells a strategy who waits, over all the attempts of one acquisition.
type Waiting struct {
	// ID names the acquisition. It is random.
	ID string
	// Since is when the waiting began.
	Since time.Time
	// Until is when it ends at the latest, by ctx's deadline; zero: there is none.
	Until time.Time
}

type waitingKey struct{}

// WithWaiting returns a copy of ctx for the attempts of somebody who has waited since then. It is
// for middleware that repeats attempts: a strategy that keeps an order among processes goes by it,
// and by ctx's deadline.
func WithWaiting(ctx context.Context, since time.Time) context.Context {
	until, _ := ctx.Deadline()
	return context.WithValue(ctx, waitingKey{}, Waiting{NewToken(), since, until})
}

// WithoutWaiting returns a copy of ctx in which nobody waits. It is for strategies that go on
// asking for a lock they hold.
func WithoutWaiting(ctx context.Context) context.Context {
	if _, waits := WaitingFrom(ctx); !waits {
		return ctx
	}
	return context.WithValue(ctx, waitingKey{}, nil)
}

// WaitingFrom returns what WithWaiting put into ctx. It is for strategies.
func WaitingFrom(ctx context.Context) (Waiting, bool) {
	w, ok := ctx.Value(waitingKey{}).(Waiting)
	return w, ok
}
