package lease

import (
	"context"
	"time"
)

// Waiting describes an acquire that waits, for strategies with an order of waiters across
// processes.
type Waiting struct {
	// ID identifies the waiters of a process; this acquire is the first of them. They have one
	// place at the server for each name. It is random, as of NewToken. Empty: no place.
	ID string
	// Since is when the acquire began to wait.
	Since time.Time
	// Until is when it stops waiting at the latest. Zero: unknown.
	Until time.Time
	// Subscribed: the process is subscribed to the channel of ID (driver.Channel.For).
	Subscribed bool
	// Next is when the acquire of the process's next waiter began. If the order of waiters is
	// strict, the next waiter takes over the place when this acquire succeeds. Zero: there is none.
	Next time.Time
	// Free: the strategy may try SET NX first. This process has just released the lock for this
	// acquire, and ID has no place.
	Free bool
	// Quorum: the attempt is one at a node of a quorum. It takes no place of its own, and is woken
	// on the channel for all waiters.
	Quorum bool
	// Behind: the attempt does not wait (Request.NoWait), and must not pass the waiters of its
	// process for the same lock. It is one of several of a call, such as locker.AcquireAll.
	Behind bool
}

type waitingKey struct{}

// WithWaiting returns a copy of ctx with w, for an attempt of an acquire that waits. It is for
// middleware that repeats attempts. The zero Waiting removes the one of ctx, for an attempt without
// a place among the waiters. If an acquire has waited in middleware around middleware/retry, w has
// Since and no ID: the first attempt of middleware/retry then asks for a place.
func WithWaiting(ctx context.Context, w Waiting) context.Context {
	if w == (Waiting{}) && ctx.Value(waitingKey{}) == nil {
		return ctx
	}
	return context.WithValue(ctx, waitingKey{}, w)
}

// WaitingFrom returns the Waiting of WithWaiting in ctx, for strategies. waits is false if there is
// none, or if it is only Behind.
func WaitingFrom(ctx context.Context) (w Waiting, waits bool) {
	w, _ = ctx.Value(waitingKey{}).(Waiting)
	return w, w != (Waiting{}) && !w.Behind
}
