// Package bounded has the contexts by which strategies bound the calls of a driver, and pipelines
// their flights.
package bounded

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/locker/driver"
)

// Context is a context with a deadline, which may end earlier with its parent. It costs one
// allocation: Done makes the channel and the timer.
type Context struct {
	context.Context // the parent
	deadline        time.Time

	// IsUrgent is for [driver.Urgent]. Set it before the context is passed on.
	IsUrgent bool

	cancellable bool                  // the parent is
	timed       atomic.Pointer[timed] // of a cancellable parent, once Done was called

	mu    sync.Mutex
	err   error // why it ended; set once, as done closes; nil if timed is set
	done  chan struct{}
	timer *time.Timer
}

// timed is a context with a timer. Contexts derived from it need no goroutine.
type timed struct {
	context.Context
	cancel context.CancelFunc
}

// New returns a context with ctx as parent and a deadline in d.
func New(ctx context.Context, d time.Duration) *Context {
	b := new(Context)
	b.Start(ctx, time.Now().Add(d))
	return b
}

// Start initializes a zero Context in another struct: it ends with ctx or at the deadline. It must
// be called once.
func (b *Context) Start(ctx context.Context, deadline time.Time) {
	b.Context, b.deadline, b.cancellable = ctx, deadline, driver.Cancellable(ctx)
	if own, ok := ctx.Deadline(); ok && own.Before(b.deadline) {
		b.deadline = own
	}
}

// Stop ends the context and frees its timer. It is for the end of the call: one in flight may not
// notice it.
func (b *Context) Stop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if t := b.timed.Load(); t != nil {
		t.cancel()
		return
	}
	b.end(context.Canceled)
}

// check ends the context if its parent has ended or its deadline has passed, and returns its error.
// The mutex is held.
func (b *Context) check() error {
	if t := b.timed.Load(); t != nil {
		if err := t.Err(); err != nil {
			return err
		}
		return b.Context.Err() // the parent may end before t notices
	}
	if b.cancellable {
		if err := b.Context.Err(); err != nil {
			b.end(err)
		}
	}
	if !time.Now().Before(b.deadline) {
		b.end(context.DeadlineExceeded)
	}
	return b.err
}

// end ends the context with err, unless it has ended. The mutex is held.
func (b *Context) end(err error) {
	if b.err != nil {
		return
	}
	b.err = err
	if b.timer != nil {
		b.timer.Stop()
	}
	if b.done != nil {
		close(b.done)
	}
}

func (b *Context) expire() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.end(context.DeadlineExceeded)
}

// Cancellable is for [driver.Cancellable]: it reports whether the parent can end before the deadline.
func (b *Context) Cancellable() bool { return b.cancellable }

// Urgent is for [driver.Urgent].
func (b *Context) Urgent() bool { return b.IsUrgent }

// Deadline implements context.Context.
func (b *Context) Deadline() (time.Time, bool) { return b.deadline, true }

// Done implements context.Context.
func (b *Context) Done() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	err := b.check()
	if t := b.timed.Load(); t != nil {
		return t.Done()
	}
	if b.done != nil {
		return b.done
	}
	if err == nil && b.cancellable {
		t := new(timed)
		t.Context, t.cancel = context.WithDeadline(b.Context, b.deadline)
		b.timed.Store(t)
		return t.Done()
	}
	b.done = make(chan struct{})
	if err != nil {
		close(b.done)
	} else {
		b.timer = time.AfterFunc(time.Until(b.deadline), b.expire)
	}
	return b.done
}

// Err implements context.Context.
func (b *Context) Err() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.check()
}

// Value implements context.Context.
func (b *Context) Value(key any) any {
	if t := b.timed.Load(); t != nil {
		return t.Value(key)
	}
	return b.Context.Value(key)
}

// Cancelled returns a channel, closed when ctx is cancelled and maybe also at its deadline; nil if
// ctx is not [driver.Cancellable]. To wait for it and for the deadline apart spares a [Context] the
// timer.
func Cancelled(ctx context.Context) <-chan struct{} {
	switch b, ok := ctx.(*Context); {
	case !driver.Cancellable(ctx):
		return nil
	case ok:
		return b.Context.Done()
	default:
		return ctx.Done()
	}
}
