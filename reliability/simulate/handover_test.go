package simulate_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/effort"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/locker/locktrace"
	"github.com/holdfast-go/holdfast/middleware/handover"
	"github.com/holdfast-go/holdfast/middleware/retry"
	"github.com/holdfast-go/holdfast/reliability/simulate"
	"github.com/holdfast-go/holdfast/reliability/workload"
	"github.com/holdfast-go/holdfast/strategies/single"
)

// In schedules that allow hand-overs some happen: else the schedules prove nothing about them.
func TestLocksAreHandedOver(t *testing.T) {
	t.Parallel()
	effort.NeedFull(t)
	handed := 0
	for seed := uint64(1); seed < 300 && handed == 0; seed++ {
		if p := simulate.NewPlan(seed); p.HandOver > 0 {
			handed += simulate.Run(t, p, nil).HandOvers
		}
	}
	if handed == 0 {
		t.Error("no lock was handed over")
	}
}

// The flaws of hand-overs.
const (
	sameFence  = "same fence"  // the next holder gets the token of the one before
	wholeLease = "whole lease" // the Deadline is forgotten: the next holder counts on a whole lease
	twoHolders = "two holders" // a hold lost since its release was sent is handed over
	unnoticed  = "unnoticed"   // the server is not asked whether it still has the lock to hand over
)

// shareChains lets the clients of a plan hand locks over, if the flaw is one of hand-overs.
func shareChains(p *simulate.Plan, flaw string) {
	switch flaw {
	case sameFence, wholeLease, twoHolders, unnoticed:
		p.ShareChains()
		p.Retry = false // the flawed Locker waits by itself
	}
}

// handingOver returns an opener of single in a chain with hand-overs. flawed changes the leases at
// the server, and change the grant of a handed-over lock. Either may be nil.
func handingOver(flawed func(lease.Lease, lease.Hold) lease.Lease, change func(g *lease.HoldInfo, l *leaseOf)) workload.Opener {
	return func(drv driver.Driver) (locker.Locker, error) {
		strategy, err := single.New(drv, single.Config{})
		waiting := locker.Chain(locker.Func(func(ctx context.Context, req locker.Request) (*locker.Lock, error) {
			lock, err := strategy.Acquire(ctx, req)
			if err == nil && flawed != nil {
				lock.Hold().Wrap(func(inner lease.Lease) lease.Lease { return flawed(inner, lock.Hold()) })
			}
			return lock, err
		}), locker.Must(handover.New(handover.Config{Tenure: time.Second})), locker.Must(retry.New(retry.Config{})))
		return locker.Func(func(ctx context.Context, req locker.Request) (*locker.Lock, error) {
			var handed atomic.Bool
			lock, err := waiting.Acquire(locktrace.With(ctx, &locktrace.Trace{
				Woken:   func(_ context.Context, i locktrace.WokenInfo) { handed.Store(i.By == locktrace.ByHandOver) },
				Attempt: func(context.Context, locktrace.AttemptInfo) { handed.Store(false) },
			}), req)
			if err != nil || change == nil {
				return lock, err
			}
			g := lease.HoldInfo{
				Name: lock.Name(), Owner: lock.Owner(), Token: lease.NewToken(), TTL: lock.TTL(),
				Deadline: lock.Deadline(), Fence: lock.Fence(),
			}
			l := &leaseOf{lock: lock, handed: handed.Load()}
			change(&g, l)
			return locker.NewLock(ctx, g, l), nil
		}), err
	}
}

var (
	newSameFence = handingOver(nil, func(g *lease.HoldInfo, l *leaseOf) {
		if l.handed {
			g.Fence--
		}
	})
	newWholeLease = handingOver(nil, func(g *lease.HoldInfo, l *leaseOf) {
		if whole := time.Now().Add(g.TTL - g.TTL/100 - 2*time.Millisecond); l.handed && whole.After(g.Deadline) {
			g.Deadline = whole
		}
	})
	newTwoHolders = handingOver(nil, func(_ *lease.HoldInfo, l *leaseOf) { l.twice = true })
	newUnnoticed  = handingOver(func(l lease.Lease, h lease.Hold) lease.Lease { return unrenewed{l, h} }, nil)
)

// leaseOf is the lease of a Lock around another.
type leaseOf struct {
	lock          *locker.Lock
	handed, twice bool // twice: the release is sent, and then the lock is handed over
}

// Do implements lease.Lease.
func (l *leaseOf) Do(ctx context.Context, op lease.Op) (lease.Result, error) {
	switch op.Kind {
	case lease.OpRenew:
		err := l.lock.Renew(ctx, op.TTL)
		return lease.Result{Deadline: l.lock.Deadline()}, err
	case lease.OpRelease:
		if under, ok := l.lock.Hold().Lease().(interface{ Unwrap() lease.Lease }); ok && l.twice {
			_, _ = under.Unwrap().Do(ctx, op)
		}
		err := l.lock.Release(ctx)
		if l.twice && errors.Is(err, locker.ErrLost) {
			err = nil // it was sent before
		}
		return lease.Result{}, err
	}
	return lease.Result{}, errors.ErrUnsupported
}

// unrenewed is a lease that sends no renewals.
type unrenewed struct {
	lease.Lease
	hold lease.Hold
}

// Do implements lease.Lease.
func (l unrenewed) Do(ctx context.Context, op lease.Op) (lease.Result, error) {
	if op.Kind == lease.OpRenew {
		return lease.Result{Deadline: l.hold.Deadline()}, nil
	}
	return l.Lease.Do(ctx, op)
}
