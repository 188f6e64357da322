package redlock_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/strategies/redlock"
	"github.com/holdfast-go/holdfast/strategies/reentrant"
)

// A nested hold of one owner has the token of the hold around it, or a higher one.
func TestNestedFenceIsNoLower(t *testing.T) {
	t.Parallel()
	var lockers []locker.Locker
	gate := make([]*gated, 3)
	for i := range 3 {
		m, drv := onMiniredis(t)
		m.SetTime(time.Now().Add(time.Duration(i) * ms)) // clocks differ by 1 ms, as clocks do
		gate[i] = &gated{Locker: locker.Must(reentrant.New(drv, reentrant.Config{}))}
		lockers = append(lockers, gate[i])
	}
	l := locker.Must(redlock.New(lockers, redlock.Config{}))
	late := gate[2].hold() // the node whose clock is ahead is the last to be asked
	outer, err := l.Acquire(t.Context(), locker.Request{Name: name, Owner: "me", Fenced: true})
	match(t, err)
	late()
	late = gate[0].hold() // next time it is another
	inner, err := l.Acquire(t.Context(), locker.Request{Name: name, Owner: "me", Fenced: true})
	match(t, err)
	if inner.Fence() < outer.Fence() { // equal where both quorums are of the same nodes
		t.Errorf("one tenure of one owner has the tokens %d and, nested, %d", outer.Fence(), inner.Fence())
	}
	late()
	match(t, inner.Release(bg))
	match(t, outer.Release(bg))
}

// gated is a Locker that is not asked before the gate opens.
type gated struct {
	locker.Locker
	mu           sync.Mutex
	gate, passed chan struct{}
}

// hold closes the gate for the next acquire; open lets it through, and waits for it.
func (g *gated) hold() (open func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	gate, passed := make(chan struct{}), make(chan struct{})
	g.gate, g.passed = gate, passed
	return func() { close(gate); <-passed }
}

func (g *gated) Acquire(ctx context.Context, req locker.Request) (*locker.Lock, error) {
	g.mu.Lock()
	gate, passed := g.gate, g.passed
	g.gate, g.passed = nil, nil
	g.mu.Unlock()
	if gate != nil {
		<-gate
		defer close(passed)
	}
	return g.Locker.Acquire(ctx, req)
}
