package faultproxy

import "sync"

// gate lets functions run while it is open. Its waiters wait on a condition, with no mutex held: in
// a bubble of testing/synctest fake time passes.
type gate struct {
	changed *sync.Cond
	shut    bool
	removed bool
	passing int // running functions
}

func newGate() gate { return gate{changed: sync.NewCond(new(sync.Mutex))} }

// pass calls f once the gate is open.
func (g *gate) pass(f func() error) error {
	g.enter()
	defer g.leave()
	return f()
}

func (g *gate) enter() {
	g.changed.L.Lock()
	defer g.changed.L.Unlock()
	for g.shut {
		g.changed.Wait()
	}
	g.passing++
}

func (g *gate) leave() {
	g.changed.L.Lock()
	defer g.changed.L.Unlock()
	g.passing--
	g.changed.Broadcast()
}

// close shuts the gate, and waits until no function runs or the gate is open again.
func (g *gate) close() {
	g.changed.L.Lock()
	defer g.changed.L.Unlock()
	g.shut = !g.removed
	for g.shut && g.passing > 0 {
		g.changed.Wait()
	}
}

// open opens the gate.
func (g *gate) open() {
	g.changed.L.Lock()
	defer g.changed.L.Unlock()
	g.shut = false
	g.changed.Broadcast()
}

// remove opens the gate for good.
func (g *gate) remove() {
	g.changed.L.Lock()
	g.removed = true
	g.changed.L.Unlock()
	g.open()
}
