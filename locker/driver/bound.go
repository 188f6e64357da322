package driver

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// Bounded is a context with a deadline, which may end earlier with its parent. It costs one
// allocation: Done makes the channel and the timer.
type Bounded struct {
	context.Context // the parent
	deadline        time.Time

	// Urgent marks a renewal, a release or a conversion. It does not queue behind acquires for a
	// connection. Set it before the context is passed on.
	Urgent bool

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

// Bound returns a context with ctx as parent and a deadline in d.
func Bound(ctx context.Context, d time.Duration) *Bounded {
	b := new(Bounded)
	b.Start(ctx, time.Now().Add(d))
	return b
}

// Start initializes a zero Bounded in another struct: it ends with ctx or at the deadline. It must
// be called once.
func (b *Bounded) Start(ctx context.Context, deadline time.Time) {
	b.Context, b.deadline, b.cancellable = ctx, deadline, Cancellable(ctx)
	if own, ok := ctx.Deadline(); ok && own.Before(b.deadline) {
		b.deadline = own
	}
}

// Stop ends the context and frees its timer. It is for the end of the call: one in flight may not
// notice it.
func (b *Bounded) Stop() {
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
func (b *Bounded) check() error {
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
func (b *Bounded) end(err error) {
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

func (b *Bounded) expire() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.end(context.DeadlineExceeded)
}

// Deadline implements context.Context.
func (b *Bounded) Deadline() (time.Time, bool) { return b.deadline, true }

// Done implements context.Context.
func (b *Bounded) Done() <-chan struct{} {
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
func (b *Bounded) Err() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.check()
}

// Value implements context.Context.
func (b *Bounded) Value(key any) any {
	if t := b.timed.Load(); t != nil {
		return t.Value(key)
	}
	return b.Context.Value(key)
}

// Cancellable reports whether ctx can end before its deadline, or at all if it has none. A
// [Bounded] whose parent cannot end is not cancellable: under its deadline, an adapter may send the
// command in the caller's goroutine.
//
// On go-redis with ContextTimeoutEnabled, acquire and release of a free lock then take 1.1 times as
// long as the bare client's two commands, and 1.6 times under a cancellable context (measured in
// turn, on two cores; BenchmarkCycle in bench does so through a lock).
func Cancellable(ctx context.Context) bool {
	switch c := ctx.(type) {
	case *Bounded:
		return c.cancellable
	case interface{ Cancellable() bool }:
		return c.Cancellable()
	}
	return ctx.Done() != nil
}

// Cancelled returns a channel, closed when ctx is cancelled and maybe also at its deadline; nil if
// ctx is not [Cancellable]. To wait for it and for the deadline apart spares a [Bounded] the timer.
func Cancelled(ctx context.Context) <-chan struct{} {
	switch b, ok := ctx.(*Bounded); {
	case !Cancellable(ctx):
		return nil
	case ok:
		return b.Context.Done()
	default:
		return ctx.Done()
	}
}

// Urgent reports whether ctx's call keeps or ends a hold ([Bounded.Urgent]).
func Urgent(ctx context.Context) bool {
	b, ok := ctx.(*Bounded)
	return ok && b.Urgent
}
