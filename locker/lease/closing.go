package lease

import (
	"context"
	"runtime"
	"sync"
	"weak"
)

// Closing is implemented by a Locker that reports the Close of its drivers.
type Closing interface {
	// OnClose calls f in a goroutine of its own once every acquire fails because of a Close, or at
	// once if it does already. For a quorum this is when too few drivers are left. stop drops f.
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

// Acquiring is implemented by a Locker over one driver, for middleware that hands locks over.
type Acquiring interface {
	// BeginAcquire is driver.Driver.BeginAcquire.
	BeginAcquire() (end func(), err error)
}

// Acquisition is one call for several locks, which releases them if it fails. Close of their
// drivers waits for its end.
type Acquisition struct {
	outer *Acquisition // in the ctx of BeginAcquisition; nil: none

	mu    sync.Mutex
	ended bool
	open  []func()  // from driver.Driver.BeginAcquire
	array [1]func() // open's at first: it saves an allocation
}

type acquisitionKey struct{}

// BeginAcquisition returns a ctx for the acquires of a call. The call must end with End or Pass.
func BeginAcquisition(ctx context.Context) (context.Context, *Acquisition) {
	a := &Acquisition{outer: acquisitionFrom(ctx)}
	a.open = a.array[:0]
	return context.WithValue(ctx, acquisitionKey{}, a), a
}

func acquisitionFrom(ctx context.Context) *Acquisition {
	a, _ := ctx.Value(acquisitionKey{}).(*Acquisition)
	return a
}

// EndAcquire calls end, the result of driver.Driver.BeginAcquire. If the acquire succeeded and ctx
// has an Acquisition, end is called when the Acquisition ends.
func EndAcquire(ctx context.Context, end func(), acquired bool) {
	if !acquired || !acquisitionFrom(ctx).keep(end) {
		end()
	}
}

// JoinAcquisition makes Close wait for the Acquisition in ctx, if there is one, as after a
// successful acquire through l.
func JoinAcquisition(ctx context.Context, l Acquiring) {
	a := acquisitionFrom(ctx)
	if a == nil {
		return
	}
	if end, err := l.BeginAcquire(); err == nil && !a.keep(end) {
		end()
	}
}

// keep defers end to the end of a. It returns false if a is nil or has ended.
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

// Pass ends a call within another one, whose Acquisition keeps the drivers open. Without an outer
// Acquisition it is End.
func (a *Acquisition) Pass() {
	for _, end := range a.end() {
		if !a.outer.keep(end) {
			end()
		}
	}
}

// end ends a, and returns the deferred functions.
func (a *Acquisition) end() []func() {
	a.mu.Lock()
	defer a.mu.Unlock()
	open := a.open
	a.ended, a.open = true, nil
	return open
}
