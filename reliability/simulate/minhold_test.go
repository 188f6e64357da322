package simulate_test

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/strategies/single"
)

// early is the flaw of a release that frees the name before MinHold has passed.
const early = "early"

func newEarly(drv driver.Driver) (locker.Locker, error) {
	l, err := single.New(drv, single.Config{})
	return frees{l}, err
}

// frees is a lock whose releases ignore MinHold.
type frees struct{ *single.Locker }

// Acquire implements locker.Locker.
func (f frees) Acquire(ctx context.Context, req locker.Request) (*locker.Lock, error) {
	lock, err := f.Locker.Acquire(ctx, req)
	if err == nil {
		lock.Hold().Wrap(func(l lease.Lease) lease.Lease { return freesLease{l} })
	}
	return lock, err
}

type freesLease struct{ lease.Lease }

// Do implements lease.Lease.
func (l freesLease) Do(ctx context.Context, op lease.Op) (lease.Term, error) {
	op.KeepUntil = time.Time{}
	return l.Lease.Do(ctx, op)
}
