package adapter

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/locker/driver"
)

const (
	// grain is how much later than its deadline a context of expiries may end.
	grain = 10 * time.Millisecond
	// near is the time before a deadline in which grain would matter.
	near = time.Second
)

// expiries lets calls with almost the same deadline share a channel and a timer: to make both for
// each command costs more than most other steps of it. The zero expiries is ready to use.
type expiries struct {
	latest atomic.Pointer[expiry]
	closed atomic.Bool
}

// close stops the timer once no context is in use. Later contexts share nothing.
func (e *expiries) close() {
	e.closed.Store(true)
	e.setLatest(nil)
}

// expiry is the common end of contexts with almost the same deadline.
type expiry struct {
	at     time.Time
	passed chan struct{}
	timer  *time.Timer
	users  atomic.Int32 // contexts in use, and one for being the latest; at 0 the timer is stopped for good
}

// share returns a context in place of ctx for one call, as of now. If ctx ends at its deadline
// alone (see [driver.Cancellable]), more than a second away, the context shares its Done with
// others, and ends up to grain after the deadline. Otherwise share returns ctx. Call unshare
// with the result when the call is over.
func (e *expiries) share(ctx context.Context, now time.Time) context.Context {
	if !driver.Cancellable(ctx) {
		if x := e.shared(ctx, now); x != nil {
			return expiring{ctx, x}
		}
	}
	return ctx
}

// unshare ends the use of a context of share.
func unshare(ctx context.Context) {
	if s, ok := ctx.(expiring); ok {
		s.expiry.leave()
	}
}

// shared returns an expiry for the deadline of ctx, or nil if there is none or it is near. The
// caller leaves it.
func (e *expiries) shared(ctx context.Context, now time.Time) *expiry {
	deadline, ok := ctx.Deadline()
	if !ok || deadline.Sub(now) <= near {
		return nil
	}
	return e.of(deadline, now)
}

// of returns the expiry for a deadline: it, or up to grain later. The caller leaves it.
func (e *expiries) of(deadline, now time.Time) *expiry {
	if x := e.latest.Load(); x != nil {
		if later := x.at.Sub(deadline); later >= 0 && later <= grain && x.join() {
			return x
		}
	}
	x := &expiry{at: deadline.Add(grain), passed: make(chan struct{})}
	x.users.Store(2)
	x.timer = time.AfterFunc(x.at.Sub(now), func() { close(x.passed) })
	e.setLatest(x)
	if e.closed.Load() { // it may have been closed before x was the latest
		e.setLatest(nil)
	}
	return x
}

// setLatest makes x, which may be nil, the latest. The one before is not joined any more.
func (e *expiries) setLatest(x *expiry) {
	if old := e.latest.Swap(x); old != nil {
		old.leave()
	}
}

// join counts one more context, unless the last one has left.
func (x *expiry) join() bool {
	for {
		users := x.users.Load()
		if users == 0 {
			return false
		}
		if x.users.CompareAndSwap(users, users+1) {
			return true
		}
	}
}

// leave ends the use counted by join or of. x may be nil.
func (x *expiry) leave() {
	if x != nil && x.users.Add(-1) == 0 {
		x.timer.Stop()
	}
}

// done returns a channel that is closed when x passes, or if x is nil, when ctx ends.
func (x *expiry) done(ctx context.Context) <-chan struct{} {
	if x == nil {
		return ctx.Done()
	}
	return x.passed
}

// expiring is a context with an expiry as its end.
type expiring struct {
	context.Context
	expiry *expiry
}

// Cancellable is for driver.Cancellable.
func (expiring) Cancellable() bool { return false }

// Done implements context.Context.
func (e expiring) Done() <-chan struct{} { return e.expiry.passed }

// Err implements context.Context. Unlike the parent's it does not read the clock.
func (e expiring) Err() error {
	select {
	case <-e.expiry.passed:
		return context.DeadlineExceeded
	default:
		return nil
	}
}
