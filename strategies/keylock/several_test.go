//realtime:ok each test runs in a bubble, by eachStrategy or eachCase, or does not wait

package keylock_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/strategies/internal/faultdriver"
	"github.com/holdfast-go/holdfast/strategies/single"
)

// severalNames returns requests for three names.
func severalNames() (reqs []locker.Request) {
	for _, name := range []string{"a", "b", "c"} {
		reqs = append(reqs, locker.Request{Name: name, TTL: time.Minute})
	}
	return reqs
}

// wantNoKeys demands that the server has no key soon.
func (b *bench) wantNoKeys(t *testing.T) {
	t.Helper()
	for end := time.Now().Add(time.Second); len(b.m.Keys()) > 0; time.Sleep(time.Millisecond) { //nolint:forbidigo // fake time
		if time.Now().After(end) {
			t.Fatalf("the server has the keys %q, want none", b.m.Keys())
		}
	}
}

// Contract 14: several locks leave nothing if the call is given up while any one has an unknown
// outcome.
func TestSeveralGivenUpLeaveNothing(t *testing.T) {
	eachCase(t, settings{}, map[string][]faultdriver.Fault{
		"executed":           {{Lose: true}, {Hang: true}},
		"executed late":      {{Late: 2 * time.Second}, {Hang: true}},
		"executed very late": {{Late: 20 * time.Second}, {Hang: true}},
		"answered late":      {{Delay: 5 * time.Second}},
	}, func(t *testing.T, b *bench, plan []faultdriver.Fault) {
		for before := range 3 { // of the three commands are answered
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			b.drv.Then(slices.Concat(make([]faultdriver.Fault, before), plan)...)
			start := time.Now()
			_, err := locker.AcquireAll(ctx, b.Locker, severalNames())
			cancel()
			wantIs(t, err, locker.ErrUnknownOutcome, context.DeadlineExceeded)
			if took := time.Since(start); errors.Is(err, locker.ErrNotAcquired) || took > 2*time.Second {
				t.Errorf("error %v after %v; ctx ended after 1s", err, took)
			}
			b.drv.WaitLate()
			sleep(time.Second)
			b.wantNoKeys(t)
			sleep(2 * time.Minute) // for the clean-up: the next plan is not for it
		}
	})
}

// closingDriver counts the acquires in flight.
type closingDriver struct {
	driver.Driver
	untilClose context.Context //nolint:containedctx // what UntilClose returns
	begin      func()          // begins to close it
	inFlight   atomic.Int64
}

func newClosingDriver(drv driver.Driver) *closingDriver {
	d := &closingDriver{Driver: drv}
	d.untilClose, d.begin = context.WithCancel(context.Background())
	return d
}

func (d *closingDriver) BeginAcquire() (end func(), err error) {
	if d.untilClose.Err() != nil {
		return nil, locker.ErrClosed
	}
	d.inFlight.Add(1)
	return func() { d.inFlight.Add(-1) }, nil
}

func (d *closingDriver) UntilClose() context.Context { return d.untilClose }

// A Close in the middle of an AcquireAll leaves nothing acquired.
func TestSeveralWhileTheDriverCloses(t *testing.T) {
	t.Parallel()
	for _, when := range []string{"before", "during the commands", "between them", "after"} {
		t.Run(when, func(t *testing.T) {
			eachStrategy(t, settings{}, func(t *testing.T, b *bench) {
				drv := newClosingDriver(b.drv)
				inner := locker.Must(b.new(drv, settings{}))
				switch when {
				case "before":
					drv.begin()
				case "during the commands":
					b.drv.Then(faultdriver.Fault{Delay: time.Second})
					time.AfterFunc(time.Second/2, drv.begin)
				}
				l := locker.Func(func(ctx context.Context, req locker.Request) (*locker.Lock, error) {
					if when == "between them" && req.Name == "b" {
						sleep(time.Second)
						drv.begin()
					}
					return inner.Acquire(ctx, req)
				})
				locks, err := locker.AcquireAll(t.Context(), l, severalNames())
				if when == "after" {
					wantNone(t, err)
					wantNone(t, locks.Release(t.Context()))
				} else {
					wantIs(t, err, locker.ErrClosed)
				}
				check.Equal(t, "acquires in flight", drv.inFlight.Load(), 0)
				b.wantNoKeys(t)
			})
		})
	}
}

// A driver that panics in the middle of an AcquireAll, as in a hook of its client, can still be
// closed.
func TestSeveralWhoseDriverPanics(t *testing.T) {
	t.Parallel()
	drv := newClosingDriver(panickingDriver{silentDriver{}})
	check.Panics(t, "in a hook", func() {
		_, err := locker.AcquireAll(t.Context(), locker.Must(single.New(drv, single.Config{})), severalNames())
		t.Errorf("AcquireAll returned %v", err)
	})
	check.Equal(t, "acquires in flight", drv.inFlight.Load(), 0)
}

// panickingDriver panics in every send.
type panickingDriver struct{ driver.Driver }

func (panickingDriver) SetNX(context.Context, string, string, time.Duration) (bool, error) {
	panic("in a hook")
}
