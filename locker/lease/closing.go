package lease

import (
	"context"
	"runtime"
	"sync"
	"weak"
)

// Closing is implemented by a Locker that knows when its drivers are closed.
type Closing interface {
	// OnClose calls f in a goroutine of its own once every acquire fails because a driver is being
	// closed, or now if that is so: for a quorum, once too few drivers are left. stop drops f.
	OnClose(f func()) (stop func() bool)
}

// WatchClose calls f with target once c is being closed. c does not keep target: the watch ends when
// target is garbage-collected. f must not refer to target.
func WatchClose[T any](c Closing, target *T, f func(*T)) {
	kept := weak.Make(target)
	stop := c.OnClose(func() {
		if target := kept.Value(); target != nil {
			f(target)
		}
	})
	runtime.AddCleanup(target, func(stop func() bool) { stop() }, stop)
}

// Acquiring is implemented by a Locker over one driver, for middleware that returns a lock without
// an acquire at the server.
type Acquiring interface {
	// BeginAcquire is that of driver.Driver.
	BeginAcquire() (end func(), err error)
}

// Acquisition is a call that acquires several locks, and releases those that it has if it fails.
// Until it ends, Close of their drivers waits for it.
type Acquisition struct {
	outer *Acquisition // of the ctx that it began under; nil: none

	mu    sync.Mutex
	ended bool
	open  []func()  // what driver.Driver.BeginAcquire returned
	array [1]func() // open's at first: it saves an allocation
}

type acquisitionKey struct{}

// BeginAcquisition returns a ctx for the acquires of a call, which must call End or Pass.
func BeginAcquisition(ctx context.Context) (context.Context, *Acquisition) {
	a := &Acquisition{outer: acquisitionFrom(ctx)}
	a.open = a.array[:0]
	return context.WithValue(ctx, acquisitionKey{}, a), a
}

func acquisitionFrom(ctx context.Context) *Acquisition {
	a, _ := ctx.Value(acquisitionKey{}).(*Acquisition)
	return a
}

// EndAcquire calls end, which driver.Driver.BeginAcquire returned. After an acquire that made a
// hold, it leaves that to the end of the Acquisition in ctx, if there is one.
func EndAcquire(ctx context.Context, end func(), acquired bool) {
	if !acquired || !acquisitionFrom(ctx).keep(end) {
		end()
	}
}

// JoinAcquisition makes Close wait for the Acquisition in ctx, if there is one, as an acquire
// through l that made a hold does.
func JoinAcquisition(ctx context.Context, l Acquiring) {
	a := acquisitionFrom(ctx)
	if a == nil {
		return
	}
	if end, err := l.BeginAcquire(); err == nil && !a.keep(end) {
		end()
	}
}

// keep leaves the call of end to the end of a, and reports whether it does. a may be nil.
func (a *Acquisition) keep(end func()) bool {
	if a == nil {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.ended {
		a.open = append(a.open, end)
	}
	return !a.ended
}

// End ends the call: its locks were released, or are the caller's. It may be called again.
func (a *Acquisition) End() {
	for _, end := range a.end() {
		end()
	}
}

// Pass ends a call that is part of another one, whose Acquisition keeps the drivers open. Without
// one it is End.
func (a *Acquisition) Pass() {
	for _, end := range a.end() {
		if !a.outer.keep(end) {
			end()
		}
	}
}

// end returns what a has kept open.
func (a *Acquisition) end() []func() {
	a.mu.Lock()
	defer a.mu.Unlock()
	open := a.open
	a.ended, a.open = true, nil
	return open
}
