package conformance

import (
	"context"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/strategies/watchdog"
)

// flawedDog renews with a flaw, in a goroutine per lock. It ends with the driver.
type flawedDog struct {
	locker.Locker
	drv driver.Driver

	goesOn  bool // a release does not end the renewing
	revives bool // the loss does not
	givesUp bool // one failure does
	silent  bool // the Lock does not hear of it
}

type flawedDogLease struct {
	lease.Lease
	released context.CancelFunc
}

func (l flawedDogLease) Do(ctx context.Context, op lease.Op) (lease.Result, error) {
	if op.Kind == lease.OpRelease {
		l.released()
	}
	return l.Lease.Do(ctx, op)
}

func (d flawedDog) Acquire(ctx context.Context, req locker.Request) (*locker.Lock, error) {
	lock, err := d.Locker.Acquire(ctx, req)
	if err != nil {
		return nil, err
	}
	released, release := context.WithCancel(context.Background())
	if d.goesOn {
		release = func() {}
	}
	var unwatched lease.Lease
	lock.Hold().Wrap(func(inner lease.Lease) lease.Lease {
		unwatched = inner
		return flawedDogLease{inner, release}
	})
	d.drv.Background(func(closing context.Context) {
		d.renew(closing, released, lock, unwatched)
	})
	return lock, nil
}

func (d flawedDog) renew(closing, released context.Context, lock *locker.Lock, unwatched lease.Lease) {
	pause := lock.TTL() / 3
	for tick := time.NewTicker(pause); ; {
		select {
		case <-tick.C:
		case <-released.Done():
			return
		case <-closing.Done():
			return
		}
		ctx, cancel := context.WithTimeout(closing, pause)
		var err error
		switch {
		case d.silent || lock.Err() != nil && (d.goesOn || d.revives):
			_, err = unwatched.Do(ctx, lease.Op{Kind: lease.OpRenew, TTL: lock.TTL()})
		default:
			err = lock.Renew(ctx, 0)
		}
		cancel()
		if err != nil && d.givesUp {
			return
		}
	}
}

func TestRenewalMutants(t *testing.T) {
	t.Parallel()
	m, reviving, once := mutants{T: t}, oneKey, oneKey
	reviving.renew = luaRevive
	once.onceOnly = true
	harness := func(a algorithm, wrap func(locker.Locker, driver.Driver) locker.Locker) *Harness {
		return around(func(drv driver.Driver, bound Timeouts) (locker.Locker, error) {
			return &mutable{drv: drv, alg: a, attempt: bound.Attempt}, nil
		},
			Capabilities{Renews: true}, wrap)
	}
	sound := func(a algorithm) *Harness {
		return harness(a, func(l locker.Locker, _ driver.Driver) locker.Locker {
			return locker.Must(watchdog.New(watchdog.Config{}))(l)
		})
	}
	flawed := func(a algorithm, d flawedDog) *Harness {
		return harness(a, func(l locker.Locker, drv driver.Driver) locker.Locker {
			d := d
			d.Locker, d.drv = l, drv
			return d
		})
	}
	m.add("a watchdog that revives an expired lease", flawed(reviving, flawedDog{revives: true}), sound(oneKey),
		"a renewal that finds the lock gone ends it", "an outage that lasts ends a renewed lock")
	m.add("a watchdog that goes on after Release", flawed(oneKey, flawedDog{goesOn: true}), sound(oneKey),
		"a release ends the renewals")
	m.add("a watchdog that keeps a loss to itself", flawed(oneKey, flawedDog{silent: true}), sound(oneKey),
		"a renewal that finds the lock gone ends it", "a renewed lock outlasts its TTL")
	m.add("a watchdog that gives up after one failure", flawed(once, flawedDog{givesUp: true}), sound(once),
		"a renewal that fails is tried again")
	m.add("no watchdog at all", harness(oneKey, func(l locker.Locker, _ driver.Driver) locker.Locker { return l }), sound(oneKey),
		"a renewed lock outlasts its TTL", "a renewal that fails is tried again", "a renewal that finds the lock gone ends it")
	m.convict()
}
