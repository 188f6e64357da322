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
	"github.com/holdfast-go/holdfast/middleware/retry"
	"github.com/holdfast-go/holdfast/reliability/simulate"
	"github.com/holdfast-go/holdfast/strategies/single"
)

// Locks are handed over in schedules that allow it. Otherwise they prove nothing about that.
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
	twoHolders = "two holders" // a hold that was lost, since its release was sent, is handed over
)

// shareChains lets the clients of a plan hand locks over, if the flaw is one of hand-overs.
func shareChains(p *simulate.Plan, flaw string) {
	switch flaw {
	case sameFence:
		p.ShareChains()
		p.Retry = false // the flawed Locker waits by itself
	case wholeLease, twoHolders:
		p.ShareChains()
	}
}

// newSameFence returns a Locker whose hand-overs have the flaw sameFence. It has retry in itself,
// and changes what that returns.
func newSameFence(drv driver.Driver) (locker.Locker, error) {
	l, err := single.New(drv, single.Config{})
	waiting := locker.Chain(l, locker.Must(retry.New(retry.Config{HandOver: time.Second})))
	return locker.Func(func(ctx context.Context, req locker.Request) (*locker.Lock, error) {
		var handed atomic.Bool
		lock, err := waiting.Acquire(locktrace.With(ctx, &locktrace.Trace{
			Woken:   func(_ context.Context, i locktrace.WokenInfo) { handed.Store(i.By == locktrace.ByHandOver) },
			Attempt: func(context.Context, locktrace.AttemptInfo) { handed.Store(false) },
		}), req)
		if err != nil || !handed.Load() {
			return lock, err
		}
		g := lease.Grant{
			Name: lock.Name(), Owner: lock.Owner(), Token: lease.NewToken(), TTL: lock.TTL(),
			Deadline: lock.Deadline(), Fence: lock.Fence() - 1,
		}
		return locker.NewLock(ctx, g, leaseOf{lock}), nil
	}), err
}

// leaseOf is the lease of a Lock around another.
type leaseOf struct{ lock *locker.Lock }

// Do implements lease.Lease.
func (l leaseOf) Do(ctx context.Context, op lease.Op) (lease.Term, error) {
	switch op.Kind {
	case lease.OpRenew:
		err := l.lock.Renew(ctx, op.TTL)
		return lease.Term{Deadline: l.lock.Deadline()}, err
	case lease.OpRelease:
		return lease.Term{}, l.lock.Release(ctx)
	}
	return lease.Term{}, errors.ErrUnsupported
}

// flawedTransfer is the lease of a lock that is handed over with a flaw.
type flawedTransfer struct {
	lease.Transferable
	flaw string
}

// Do implements lease.Lease.
func (l *flawedTransfer) Do(ctx context.Context, op lease.Op) (lease.Term, error) {
	term, err := l.Transferable.Do(ctx, op)
	if l.flaw == twoHolders && op.Kind == lease.OpRelease && errors.Is(err, locker.ErrLost) {
		err = nil // it was sent before
	}
	return term, err
}

// Transfer implements lease.Transferable.
func (l *flawedTransfer) Transfer() (lease.Grant, bool) {
	g, ok := l.Transferable.Transfer()
	switch l.flaw {
	case wholeLease:
		if whole := time.Now().Add(g.TTL - g.TTL/100 - 2*time.Millisecond); whole.After(g.Deadline) {
			g.Deadline = whole
		}
	case twoHolders:
		_, _ = l.Transferable.Do(context.Background(), lease.Op{Kind: lease.OpRelease})
	}
	return g, ok
}
