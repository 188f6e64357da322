package conformance

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-go/holdfast/internal/acquisition"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/middleware/retry"
)

// several is a way to acquire several locks and work under them, with a flaw.
type several struct {
	asGiven   bool // in the order of the requests
	eachOne   bool // a name asked for twice is acquired twice
	leaves    bool // leaves the locks acquired before a failure
	firstOnly bool // the work ends with the first lock alone
	keeps     bool // keeps the locks of a first try while waiting for the rest
}

func (s several) do(ctx context.Context, l locker.Locker, reqs []locker.Request, fn func(context.Context, []*locker.Lock) error) (err error) {
	order := slices.Clone(reqs)
	if !s.asGiven {
		slices.SortStableFunc(order, func(a, b locker.Request) int { return strings.Compare(a.Name, b.Name) })
	}
	locks := map[string]*locker.Lock{}
	var release []func() error
	defer func() {
		for _, f := range slices.Backward(release) {
			err = errors.Join(err, f())
		}
	}()
	if s.keeps {
		for _, req := range order {
			req.NoWait = true
			if lock, err := l.Acquire(ctx, req); err == nil {
				locks[req.Name] = lock
				release = append(release, func() error { return lock.Release(ctx) })
			}
		}
	}
	work := ctx
	for i, req := range order {
		if locks[req.Name] != nil && !s.eachOne {
			continue
		}
		lock, err := l.Acquire(ctx, req)
		if err != nil {
			if s.leaves {
				release = nil
			}
			return err
		}
		locks[req.Name] = lock
		release = append(release, func() error { return lock.Release(ctx) })
		if i == 0 || !s.firstOnly {
			var cancel context.CancelFunc
			work, cancel = lock.Context(work) //nolint:fatcontext // one for each of few locks
			defer cancel()
		}
	}
	asked := make([]*locker.Lock, len(reqs))
	for i, req := range reqs {
		asked[i] = locks[req.Name]
	}
	return fn(work, asked)
}

func TestMutantsOfSeveralLocks(t *testing.T) {
	t.Parallel()
	m := mutants{T: t}
	add := func(name string, flawed several, caught ...string) {
		m.add(name, &Harness{Dial: plain, doAll: flawed.do}, sound, caught...)
	}
	add("names in the order of the requests", several{asGiven: true}, "names are acquired in one order")
	add("a name asked for twice that is acquired twice", several{eachOne: true}, "one name asked for twice is one lock")
	add("what was acquired left when one fails", several{leaves: true},
		"several names are acquired or none", "several names in one slot are acquired or none")
	add("a first try whose locks are kept while the call waits", several{keeps: true}, "names are acquired in one order")
	add("work that ends with its first lock alone", several{firstOnly: true}, "the loss of any of several locks ends the work")
	unkeptWaits := func(cfg retry.Config) (locker.Middleware, error) {
		waits, err := retry.New(cfg)
		return func(inner locker.Locker) locker.Locker { return waits(unkept{inner}) }, err
	}
	m.add("a call that Close does not wait for", &Harness{Dial: plain, waits: unkeptWaits}, sound,
		"close waits until several locks are released")
	m.convict()
}

// unkept lets Close of a driver wait for each acquire alone, not for the call around it.
type unkept struct{ locker.Locker }

func (u unkept) Unwrap() locker.Locker { return u.Locker }

func (u unkept) Acquire(ctx context.Context, req locker.Request) (*locker.Lock, error) {
	ctx, alone := acquisition.Begin(ctx)
	defer alone.End()
	return u.Locker.Acquire(ctx, req)
}

// tableOfNames keeps Locks by name in the naive way.
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
