package driver

import (
	"context"
	"sync"
)

// Gathering is a number of concurrent calls. Their commands wait until each call has sent one, or
// has ended, so that those to the same server travel together. An adapter bounds the wait:
// adapter.Pipeline by a millisecond.
type Gathering struct {
	mu      sync.Mutex
	missing int            // calls without a command, not ended
	ready   map[any]func() // called once none is missing
}

// NewGathering returns a Gathering of n calls.
func NewGathering(n int) *Gathering { return &Gathering{missing: n} }

// Join returns a copy of ctx for one of the calls. leave must be called when the call has ended. A
// nil ctx stays nil.
func (g *Gathering) Join(ctx context.Context) (joined context.Context, leave func()) {
	if ctx == nil {
		return nil, func() {}
	}
	c := &GatheredCall{gathering: g}
	return context.WithValue(ctx, gatheredKey{}, c), func() { c.Arrive(nil, nil) }
}

// GatheredCall is one call of a [Gathering].
type GatheredCall struct {
	gathering *Gathering
	arrived   bool
}

type gatheredKey struct{}

// Gathered returns the call of ctx; nil if it is not of a Gathering.
func Gathered(ctx context.Context) *GatheredCall {
	c, _ := ctx.Value(gatheredKey{}).(*GatheredCall)
	return c
}

// Waits reports whether a command of c is to wait for other calls. c may be nil.
func (c *GatheredCall) Waits() bool {
	if c == nil {
		return false
	}
	c.gathering.mu.Lock()
	defer c.gathering.mu.Unlock()
	return c.gathering.missing > 0
}

// Arrive adds a waiting command of c. Once no call is missing, ready is called: by the Arrive or
// leave of the last call, and once for each key.
func (c *GatheredCall) Arrive(key any, ready func()) {
	for _, ready := range c.gathering.arrive(c, key, ready) {
		ready()
	}
}

// arrive returns the functions to call now.
func (g *Gathering) arrive(c *GatheredCall, key any, ready func()) map[any]func() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if ready != nil {
		if g.ready == nil {
			g.ready = map[any]func(){}
		}
		g.ready[key] = ready
	}
	if !c.arrived {
		c.arrived = true
		g.missing--
	}
	if g.missing > 0 {
		return nil
	}
	now := g.ready
	g.ready = nil
	return now
}
