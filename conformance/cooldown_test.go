package conformance

import (
	"context"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/conformance/drivertest"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/lease"
)

// cooling is strategies/single with a cool-down: a release leaves the name taken for a moment.
type cooling struct{ locker.Locker }

const coolDown = 5 * time.Millisecond

func newCooling(drv driver.Driver, bound Timeouts) (locker.Locker, error) {
	l, err := newSingle(drv, bound)
	return cooling{l}, err
}

func (c cooling) Unwrap() locker.Locker { return c.Locker }

func (c cooling) Acquire(ctx context.Context, req locker.Request) (*locker.Lock, error) {
	lock, err := c.Locker.Acquire(ctx, req)
	if err == nil {
		lock.Hold().Wrap(func(inner lease.Lease) lease.Lease { return coolingLease{inner} })
	}
	return lock, err
}

type coolingLease struct{ lease.Lease }

func (l coolingLease) Unwrap() lease.Lease { return l.Lease }

func (l coolingLease) Do(ctx context.Context, op lease.Op) (lease.Result, error) {
	if end := time.Now().Add(coolDown); op.Kind == lease.OpRelease && op.KeepUntil.Before(end) {
		op.KeepUntil = end
	}
	return l.Lease.Do(ctx, op)
}

// TestCoolDown runs the suite on a strategy with a cool-down after each release.
func TestCoolDown(t *testing.T) {
	t.Parallel()
	Run(t, Harness{
		Name: "cooling", Dial: plain, New: newCooling, On: []drivertest.Kind{drivertest.Memory},
		Can: Capabilities{MinHold: true, CoolDown: coolDown},
	})
}
