package conformance

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/strategies/reentrant"
	"github.com/holdfast-go/holdfast/strategies/rwhash"
)

// flawedMinHold is a strategy with a flaw in the minimum hold.
type flawedMinHold struct {
	locker.Locker
	drv driver.Driver

	frees     bool // a release frees the name
	inProcess bool // the release is sent when MinHold has passed
	forgotten bool // by a resume
	endless   bool // a refusal does not say when MinHold ends
	reenters  bool // the owner may enter what it released
	exclusive bool // readers do not enter what a reader released
}

func (f flawedMinHold) Acquire(ctx context.Context, req locker.Request) (*locker.Lock, error) {
	if g := req.Resume.Grant(); f.forgotten && g.Token != "" {
		g.MinHold = 0
		req.Resume = locker.NewHandle(g)
	}
	if f.exclusive && req.Mode == locker.Shared {
		if state, err := locker.Inspect(ctx, f.Locker, req.Name); err == nil && state.Held && state.Holds == 0 {
			return nil, &locker.ContentionError{Name: req.Name}
		}
	}
	lock, err := f.Locker.Acquire(ctx, req)
	if held, refused := errors.AsType[*locker.ContentionError](err); refused && held.Released {
		switch {
		case f.endless:
			held.Left, held.RetryAfter = time.Hour, time.Hour
		case f.reenters && held.Owner == req.Owner:
			_, err = f.drv.Eval(ctx, driver.NewScript(`return redis.call('DEL', KEYS[1])`), []string{req.Name}, nil)
			if err == nil {
				return f.Locker.Acquire(ctx, req)
			}
		}
	}
	if err == nil && (f.inProcess || f.frees) {
		lock.Hold().Wrap(func(inner lease.Lease) lease.Lease { return lateLease{inner, f} })
	}
	return lock, err
}

// lateLease releases at once or, in the background, when MinHold has passed.
type lateLease struct {
	lease.Lease
	f flawedMinHold
}

func (l lateLease) Do(ctx context.Context, op lease.Op) (lease.Term, error) {
	if op.Kind != lease.OpRelease || op.KeepUntil.IsZero() {
		return l.Lease.Do(ctx, op)
	}
	if l.f.frees {
		return l.Lease.Do(ctx, lease.Op{Kind: lease.OpRelease})
	}
	l.f.drv.(driver.Backgrounder).Background(func(closing context.Context) {
		timer := time.NewTimer(time.Until(op.KeepUntil))
		defer timer.Stop()
		select {
		case <-timer.C:
			_, _ = l.Lease.Do(closing, lease.Op{Kind: lease.OpRelease})
		case <-closing.Done():
		}
	})
	return lease.Term{}, nil
}

func TestMinHoldMutants(t *testing.T) {
	t.Parallel()
	ours := Capabilities{MinHold: true}
	strategies := map[string]func(driver.Driver, Timeouts) (locker.Locker, error){
		"single": newSingle,
		"reentrant": func(drv driver.Driver, bound Timeouts) (locker.Locker, error) {
			return reentrant.New(drv, reentrant.Config{AttemptTimeout: bound.Attempt})
		},
		"rwhash": func(drv driver.Driver, bound Timeouts) (locker.Locker, error) {
			return rwhash.New(drv, rwhash.Config{AttemptTimeout: bound.Attempt})
		},
	}
	around := func(strategy string, f flawedMinHold, can Capabilities) *Harness {
		return &Harness{Dial: plain, Can: can, New: func(drv driver.Driver, bound Timeouts) (locker.Locker, error) {
			l, err := strategies[strategy](drv, bound)
			f.Locker, f.drv = l, drv
			return f, err
		}}
	}
	quorum := func(f flawedMinHold) *Harness {
		newQuorum := func(nodes []locker.Locker, need int, bound Timeouts) (locker.Locker, error) {
			l, err := newRedlock(nodes, need, bound)
			f.Locker = l
			return f, err
		}
		return &Harness{Dial: plain, Can: ours, NewQuorum: newQuorum}
	}
	suspects := []suspect{
		{
			"a release that frees the name", around("single", flawedMinHold{frees: true}, ours), around("single", flawedMinHold{}, ours),
			[]string{"a release before MinHold keeps the name taken"},
		},
		{
			"a resume that forgets MinHold", around("single", flawedMinHold{forgotten: true}, ours), around("single", flawedMinHold{}, ours),
			[]string{"a resumed hold keeps its MinHold"},
		},
		{
			"a release that the process delays", around("single", flawedMinHold{inProcess: true}, ours), around("single", flawedMinHold{}, ours),
			[]string{"a minimum hold outlives its process"},
		},
		{
			"a refusal that does not say when MinHold ends", around("single", flawedMinHold{endless: true}, ours), around("single", flawedMinHold{}, ours),
			[]string{"a waiter acquires at the end of MinHold"},
		},
		{
			"an owner that enters what it released", around("reentrant", flawedMinHold{reenters: true}, Capabilities{MinHold: true, Reentrant: true, Hash: true}),
			around("reentrant", flawedMinHold{}, Capabilities{MinHold: true, Reentrant: true, Hash: true}),
			[]string{"a minimum hold keeps its owner out"},
		},
		{
			"a minimum hold that is always exclusive", around("rwhash", flawedMinHold{exclusive: true}, Capabilities{MinHold: true, Shared: true, Hash: true}),
			around("rwhash", flawedMinHold{}, Capabilities{MinHold: true, Shared: true, Hash: true}),
			[]string{"the minimum hold of a reader keeps writers out"},
		},
		{
			"a quorum that frees the name", quorum(flawedMinHold{frees: true}), quorum(flawedMinHold{}),
			[]string{"a quorum keeps the name taken for MinHold"},
		},
	}
	for _, m := range []struct {
		name   string
		mutate func(*algorithm)
		caught string
	}{
		{"a MinHold that counts from the release", func(a *algorithm) {
			a.keeps = func(h *mutableHold) time.Duration { return h.minHold }
		}, "MinHold counts from the acquire"},
		{"a lease that does not last for MinHold", func(a *algorithm) {
			a.leaseIgnoresMinHold = true
		}, "a lease lasts for MinHold"},
		{"a release that leaves its hold", func(a *algorithm) {
			a.release = luaStringKeepsHold
		}, "a minimum hold belongs to nobody"},
		{"a release that is sent once", func(a *algorithm) {
			a.onceOnly = true
		}, "a release that keeps the name is resolved"},
		{"a clean-up that keeps the name", func(a *algorithm) {
			a.keepsInUndo = true
		}, "an acquire that was given up keeps no name"},
	} {
		flawed := oneKey
		m.mutate(&flawed)
		suspects = append(suspects, suspect{m.name, flawed.harness(ours), oneKey.harness(ours), []string{m.caught}})
	}
	convict(t, suspects)
}
