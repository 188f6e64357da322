package conformance

import (
	"context"
	"sync"
	"testing"

	"github.com/holdfast-go/holdfast/internal/sibling"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
)

// flawedInspect is single with a flaw in Inspect, by which locker.Watch polls.
type flawedInspect struct {
	locker.Locker
	drv driver.Driver

	caches     bool // it always returns its first result
	givesUp    bool // after an error it gives up
	free       bool // an outage looks like a free lock
	subscribes bool // it listens for releases

	mu     sync.Mutex
	asked  bool
	first  locker.State
	failed bool
}

func (f *flawedInspect) Inspect(ctx context.Context, name string) (locker.State, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.givesUp && f.failed {
		return locker.State{}, locker.ErrClosed
	}
	if f.subscribes && !f.asked {
		channel, _ := sibling.Of(name, sibling.WakeSuffix)
		if sub, err := f.drv.Subscribe(ctx, channel); err == nil {
			defer sub.Close()
		}
	}
	state, err := f.Locker.(locker.Inspector).Inspect(ctx, name)
	f.failed = f.failed || err != nil
	if err != nil && f.free {
		return locker.State{}, nil
	}
	if f.caches && f.asked {
		return f.first, nil
	}
	f.asked, f.first = true, state
	return state, err
}

func TestWatchMutants(t *testing.T) {
	t.Parallel()
	m := mutants{T: t}
	inspects := func(flaw func(*flawedInspect)) *Harness {
		return around(newSingle, Capabilities{}, func(l locker.Locker, drv driver.Driver) locker.Locker {
			f := &flawedInspect{Locker: l, drv: drv}
			flaw(f)
			return f
		})
	}
	m.add("an Inspect that repeats its first answer", inspects(func(f *flawedInspect) { f.caches = true }), sound,
		"Watch sees a hold come and go", "Inspect reports the holder")
	m.add("an Inspect that gives up", inspects(func(f *flawedInspect) { f.givesUp = true }), sound, "Watch outlives an outage")
	m.add("an Inspect to which an outage is a free lock", inspects(func(f *flawedInspect) { f.free = true }), sound,
		"Watch outlives an outage")
	m.add("an Inspect that listens", inspects(func(f *flawedInspect) { f.subscribes = true }), sound, "Watch sends nothing but polls")
	m.convict()
}
