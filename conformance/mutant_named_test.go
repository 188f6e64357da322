package conformance

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/named"
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
	var suspects []suspect
	for _, m := range []struct {
		name   string
		flawed func(*tableOfNames)
		caught string
	}{
		{"a refused TryLock that overwrites the holder's entry", func(m *tableOfNames) { m.overwrites = true }, "a name is locked once in all processes"},
		{"a lost lock whose entry stays", func(m *tableOfNames) { m.stays = true }, "a lost name blocks nobody"},
		{"an Unlock that releases the next one's lock", func(*tableOfNames) {}, "a lost name blocks nobody"},
	} {
		flawed := func(l locker.Locker, req locker.Request) names {
			table := &tableOfNames{locker: l, req: req, locks: map[string]*locker.Lock{}}
			m.flawed(table)
			return table
		}
		sound := func(l locker.Locker, req locker.Request) names { return locker.Must(named.New(l, req)) }
		suspects = append(suspects, suspect{
			m.name, &Harness{Dial: plain, named: flawed}, &Harness{Dial: plain, named: sound}, []string{m.caught},
		})
	}
	convict(t, suspects)
}
