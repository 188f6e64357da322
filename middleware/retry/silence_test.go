package retry_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/internal/lockerrors"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/middleware/retry"
	"github.com/holdfast-go/holdfast/strategies/single"
)

// silencing is a driver whose scripts get no answer while silent is set.
type silencing struct {
	driver.Driver
	silent atomic.Bool
}

func (d *silencing) Eval(ctx context.Context, s *driver.Script, keys, args []string) (driver.Reply, error) {
	if d.silent.Load() {
		<-ctx.Done()
		return driver.Reply{}, ctx.Err()
	}
	return d.Driver.Eval(ctx, s, keys, args)
}

// A waiter behind a second of the server's silence reports an outage, also through Try.
func TestWaitingBehindASilentServer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := clients.NewMemory(t)
		drv := &silencing{Driver: clients.OpenMemory(t, m)}
		l := wrap(t, locker.Must(single.New(drv, single.Config{})), retry.Config{Policy: constant(10 * ms)})
		other := locker.Must(single.New(clients.OpenMemory(t, m), single.Config{}))
		held := locker.Must(other.Acquire(t.Context(), locker.Request{Name: name, Owner: "w7", TTL: time.Minute}))
		ctx, cancel := context.WithCancel(t.Context())
		leader := make(chan error, 1)
		go func() { _, err := l.Acquire(ctx, locker.Request{Name: name}); leader <- err }()
		elapse(time.Second) // it is refused
		drv.silent.Store(true)
		ran, err := locker.Try(t.Context(), l, locker.Request{Name: name, MaxWait: 4 * time.Second},
			func(context.Context, *locker.Lock) error { return nil })
		if ran {
			t.Error("Try ran beside the holder")
		}
		match(t, err, []error{locker.ErrMaxWait}, []error{locker.ErrNotAcquired, locker.ErrUnknownOutcome})
		silent, ok := errors.AsType[*lockerrors.AttemptError](err)
		if !ok || silent.Server != drv.Info().Address || silent.Took < time.Second || !strings.Contains(err.Error(), `owner "w7"`) {
			t.Errorf("error %v, want the silence of %q and what was known", err, drv.Info().Address)
		}
		drv.silent.Store(false)
		cancel()
		check.Is(t, <-leader, context.Canceled)
		check.OK(t, held.Release(t.Context()))
		elapse(time.Minute) // the clean-up ends
	})
}
