package workload

import (
	"sync"

	"github.com/holdfast-go/holdfast/reliability/history"
)

// Passes keeps, for each name, the last hold passed on. Take does not remove it, so several clients
// may try to resume it.
type Passes interface {
	Put(name string, p history.Passed)
	Take(name string) (history.Passed, bool)
}

// PassesInMemory is Passes for the clients of one process. It is safe for concurrent use.
type PassesInMemory struct{ byName sync.Map }

// Put implements Passes.
func (p *PassesInMemory) Put(name string, passed history.Passed) { p.byName.Store(name, passed) }

// Take implements Passes.
func (p *PassesInMemory) Take(name string) (history.Passed, bool) {
	found, ok := p.byName.Load(name)
	if !ok {
		return history.Passed{}, false
	}
	return found.(history.Passed), true
}
