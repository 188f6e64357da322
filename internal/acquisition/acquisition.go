// Package acquisition keeps drivers open during a call that acquires several locks.
package acquisition

import (
	"context"
	"sync"
)

// Acquisition is one call for several locks, which releases them if it fails. Close of their
// drivers waits for its end.
type Acquisition struct {
	outer *Acquisition // in the ctx of Begin; nil: none

	mu    sync.Mutex
	ended bool
	open  []func()  // from driver.Driver.BeginAcquire
	array [1]func() // open's at first: it saves an allocation
}

type key struct{}

// Begin returns a ctx for the acquires of a call. The call must end with End or Pass.
func Begin(ctx context.Context) (context.Context, *Acquisition) {
	a := &Acquisition{outer: from(ctx)}
	a.open = a.array[:0]
	return context.WithValue(ctx, key{}, a), a
}

func from(ctx context.Context) *Acquisition {
	a, _ := ctx.Value(key{}).(*Acquisition)
	return a
}

// EndAcquire is lease.EndAcquire.
func EndAcquire(ctx context.Context, end func(), acquired bool) {
	if !acquired || !from(ctx).keep(end) {
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
