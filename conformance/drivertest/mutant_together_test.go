package drivertest

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/conformance/internal/suitetest"
	"github.com/holdfast-go/holdfast/locker/driver"
)

// traffic is a flawed driver's record of its calls.
type traffic struct {
	mu       sync.Mutex
	underWay int
	last     answered           // of the calls
	trip     context.Context    //nolint:containedctx // of all calls under way
	end      context.CancelFunc // of trip
	places   chan struct{}      // one for each call under way
}

type answered struct {
	v   any
	err error
}

// enter counts a call, and returns how many are under way.
func (tr *traffic) enter() int {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	if tr.underWay++; tr.underWay == 1 {
		tr.trip, tr.end = context.WithCancel(context.Background())
	}
	return tr.underWay
}

func (tr *traffic) leave() {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	if tr.underWay--; tr.underWay == 0 {
		tr.end()
	}
}

// amongOthers makes a driver with a flaw in concurrent calls, of which places may be under way. The
// flaw is a function that sends a command.
func amongOthers(places int, flaw func(ctx context.Context, tr *traffic, send func(context.Context) answered) answered) suitetest.Driver {
	var all sync.Map // a *traffic for each driver
	call := func(ctx context.Context, d driver.Driver, send func(context.Context) answered) answered {
		tr, _ := all.LoadOrStore(d, &traffic{places: make(chan struct{}, places)})
		return flaw(ctx, tr.(*traffic), send)
	}
	return suitetest.Driver{
		OnSetNX: func(ctx context.Context, d driver.Driver, key, value string, ttl time.Duration) (bool, error) {
			a := call(ctx, d, func(ctx context.Context) answered {
				set, err := d.SetNX(ctx, key, value, ttl)
				return answered{set, err}
			})
			set, _ := a.v.(bool)
			return set, a.err
		},
		OnEval: func(ctx context.Context, d driver.Driver, s *driver.Script, keys, args []string) (driver.Reply, error) {
			a := call(ctx, d, func(ctx context.Context) answered {
				r, err := d.Eval(ctx, s, keys, args)
				return answered{r, err}
			})
			r, _ := a.v.(driver.Reply)
			return r, a.err
		},
	}
}

// swapped returns the answer to another call, if there are others.
func swapped(ctx context.Context, tr *traffic, send func(context.Context) answered) answered {
	tr.enter()
	defer tr.leave()
	a := send(ctx)
	tr.mu.Lock()
	defer tr.mu.Unlock()
	if tr.underWay > 1 {
		a, tr.last = tr.last, a
	}
	return a
}

// endedTogether ends all calls under way with the context of any.
func endedTogether(ctx context.Context, tr *traffic, send func(context.Context) answered) answered {
	tr.enter()
	defer tr.leave()
	tr.mu.Lock()
	trip, end := tr.trip, tr.end
	tr.mu.Unlock()
	defer context.AfterFunc(ctx, end)()
	return send(trip)
}

// resentTogether resends a call if it began beside others and its connection broke.
func resentTogether(ctx context.Context, tr *traffic, send func(context.Context) answered) answered {
	alone := tr.enter() == 1
	defer tr.leave()
	a := send(ctx)
	if a.err != nil && !alone && !driver.NotExecuted(a.err) && ctx.Err() == nil {
		return send(ctx)
	}
	return a
}

// resentUnknown resends a script that began beside others if it was not known before.
func resentUnknown() suitetest.Driver {
	type call struct {
		drv driver.Driver
		s   *driver.Script
	}
	var known sync.Map
	var underWay atomic.Int32
	return suitetest.Driver{OnEval: func(ctx context.Context, d driver.Driver, s *driver.Script, keys, args []string) (driver.Reply, error) {
		_, before := known.Load(call{d, s})
		alone := underWay.Add(1) == 1
		defer underWay.Add(-1)
		r, err := d.Eval(ctx, s, keys, args)
		known.Store(call{d, s}, true)
		if !before && !alone {
			return d.Eval(ctx, s, keys, args)
		}
		return r, err
	}}
}

// keptInQueue leaves a call in its queue when the caller leaves.
func keptInQueue(ctx context.Context, tr *traffic, send func(context.Context) answered) answered {
	if err := ctx.Err(); err != nil {
		return answered{err: driver.NotSent(err)}
	}
	begun, done := make(chan struct{}), make(chan answered, 1)
	go func() {
		tr.places <- struct{}{}
		defer func() { <-tr.places }()
		close(begun)
		done <- send(context.WithoutCancel(ctx))
	}()
	select {
	case a := <-done:
		return a
	case <-ctx.Done():
	}
	select {
	case <-begun:
		return answered{err: ctx.Err()}
	default:
		return answered{err: driver.NotSent(ctx.Err())}
	}
}

// inLine sends over one connection, even if it does not answer.
func inLine(ctx context.Context, tr *traffic, send func(context.Context) answered) answered {
	select {
	case tr.places <- struct{}{}:
	case <-ctx.Done():
		return answered{err: driver.NotSent(ctx.Err())}
	}
	done := make(chan answered, 1)
	go func() {
		defer func() { <-tr.places }()
		done <- send(context.WithoutCancel(ctx))
	}()
	select {
	case a := <-done:
		return a
	case <-ctx.Done():
		return answered{err: ctx.Err()}
	}
}
