// Package gather lets the commands of concurrent calls travel together.
package gather

import (
	"context"
	"sync"
)

// Group is a number of concurrent calls. Their commands wait until each call has sent one, or
// has ended, so that those to the same server travel together. An adapter bounds the wait:
// adapter.Pipeline by a millisecond.
type Group struct {
	mu      sync.Mutex
	missing int            // calls without a command, not ended
	ready   map[any]func() // called once none is missing
}

// NewGroup returns a Group of n calls.
func NewGroup(n int) *Group { return &Group{missing: n} }

// Join returns a copy of ctx for one of the calls. leave must be called when the call has ended. A
// nil ctx stays nil.
func (g *Group) Join(ctx context.Context) (joined context.Context, leave func()) {
	if ctx == nil {
		return nil, func() {}
	}
	c := &Call{group: g}
	return context.WithValue(ctx, callKey{}, c), func() { c.Arrive(nil, nil) }
}

// Call is one call of a [Group].
type Call struct {
	group   *Group
	arrived bool
}

type callKey struct{}

// CallOf returns the call of ctx; nil if it is not of a Group.
func CallOf(ctx context.Context) *Call {
	c, _ := ctx.Value(callKey{}).(*Call)
	return c
}

// Waits reports whether a command of c is to wait for other calls. c may be nil.
func (c *Call) Waits() bool {
	if c == nil {
		return false
	}
	c.group.mu.Lock()
	defer c.group.mu.Unlock()
	return c.group.missing > 0
}

// Arrive adds a waiting command of c. Once no call is missing, ready is called: by the Arrive or
// leave of the last call, and once for each key.
func (c *Call) Arrive(key any, ready func()) {
	for _, ready := range c.group.arrive(c, key, ready) {
		ready()
	}
}

// arrive returns the functions to call now.
func (g *Group) arrive(c *Call, key any, ready func()) map[any]func() {
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
