package conformance

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/holdfast-go/holdfast/locker"
)

// tableOfNames keeps Locks by name in the way that is written first.
type tableOfNames struct {
	locker locker.Locker
	req    locker.Request

	overwrites bool // a refused TryLock overwrites the entry of the holder
	stays      bool // the entry of a lost lock stays
	// Its Unlock releases whatever there is under the name.

	mu    sync.Mutex
	locks map[string]*locker.Lock
}

func (m *tableOfNames) TryLock(ctx context.Context, name string) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.stays && m.locks[name] != nil {
		return false, nil
	}
	req := m.req
	req.Name = name
	lock, err := m.locker.Acquire(ctx, req)
	if err == nil || m.overwrites {
		m.locks[name] = lock
	}
	if errors.Is(err, locker.ErrNotAcquired) {
		err = nil
	}
	return lock != nil, err
}

func (m *tableOfNames) Unlock(ctx context.Context, name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	lock := m.locks[name]
	delete(m.locks, name)
	return lock.Release(ctx)
}

func TestMutantsByName(t *testing.T) {
	t.Parallel()
	m := mutants{T: t}
	flawed := func(flaw func(*tableOfNames)) *Harness {
		return &Harness{Dial: plain, named: func(l locker.Locker, req locker.Request) names {
			table := &tableOfNames{locker: l, req: req, locks: map[string]*locker.Lock{}}
			flaw(table)
			return table
		}}
	}
	m.add("a refused TryLock that overwrites the holder's entry", flawed(func(m *tableOfNames) { m.overwrites = true }), sound,
		"a name is locked once in all processes")
	m.add("a lost lock whose entry stays", flawed(func(m *tableOfNames) { m.stays = true }), sound, "a lost name blocks nobody")
	m.add("an Unlock that releases the next one's lock", flawed(func(*tableOfNames) {}), sound, "a lost name blocks nobody")
	m.convict()
}
