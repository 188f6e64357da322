package lease

import (
	"context"
	"time"
)

// Waiting describes an acquire that waits, for a strategy that orders waiters across processes.
type Waiting struct {
	// ID identifies the waiters of a process, of which this acquire is the first. They have one
	// place at the server for each name. It is random, such as NewToken returns. Empty: no place.
	ID string
	// Since is when the acquire began to wait.
	Since time.Time
	// Until is when it stops waiting at the latest. Zero: unknown.
	Until time.Time
	// Subscribed says that the process is subscribed to the channel of ID (driver.Channel.For).
	Subscribed bool
	// Next is when the acquire of the process's next waiter began. If the order of waiters is
	// strict, that waiter takes over the place when this acquire succeeds. Zero: there is none.
	Next time.Time
	// Free says that the lock was free a moment ago, and that ID has no place: the process released
	// it for this acquire.
	Free bool
	// Quorum says that this is an attempt at one node of a quorum. It takes no place of its own,
	// and is woken on the channel for all waiters.
	Quorum bool
}

type waitingKey struct{}

// WithWaiting returns a copy of ctx with w, for an attempt of an acquire that waits. It is for
// middleware that repeats attempts. Middleware around middleware/retry whose acquire has waited
// before gives it a w with Since and without an ID: its first attempt then asks for a place.
func WithWaiting(ctx context.Context, w Waiting) context.Context {
	return context.WithValue(ctx, waitingKey{}, w)
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

type behindKey struct{}

// BehindWaiters returns a copy of ctx for an attempt that does not wait, and must not pass the
// requests of its process that wait for the same lock.
func BehindWaiters(ctx context.Context) context.Context {
	return context.WithValue(ctx, behindKey{}, true)
}

// IsBehindWaiters reports whether ctx is of BehindWaiters.
func IsBehindWaiters(ctx context.Context) bool { return ctx.Value(behindKey{}) != nil }
