package holdfast_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lockertest"
	"github.com/holdfast-go/holdfast/middleware/retry"
	"github.com/holdfast-go/holdfast/strategies/watchdog"
)

func TestMain(m *testing.M) { clients.VerifyNoLeaks(m) }

func TestRefused(t *testing.T) {
	t.Parallel()
	refused := func(what string, l locker.Locker, err error) {
		if !errors.Is(err, locker.ErrInvalid) || l != nil {
			t.Errorf("%s: got %v, %v; want ErrInvalid", what, l, err)
		}
	}
	drv := clients.All[0].OpenMini(t, miniredis.RunT(t).Addr())
	for name, cfg := range map[string]holdfast.Config{
		"watchdog": {Watchdog: watchdog.Config{MaxRenewals: -1}},
		"retry":    {Retry: retry.Config{MaxAttempts: -1}},
		"handover": {HandOver: -1},
	} {
		l, err := holdfast.New(drv, cfg)
		refused("New with a bad "+name, l, err)
		l, err = holdfast.Wrap(lockertest.New(), cfg)
		refused("Wrap with a bad "+name, l, err)
	}
	l, err := holdfast.New(nil, holdfast.Config{})
	refused("New without a driver", l, err)
	l, err = holdfast.Wrap(nil, holdfast.Config{})
	refused("Wrap without a strategy", l, err)
}

// The chain is the same over any strategy, and Inspect reaches through it.
func TestWrap(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := locker.Must(holdfast.Wrap(lockertest.New(), holdfast.Config{}))
		err := locker.Do(t.Context(), l, locker.Request{Name: "n", Owner: "me"}, func(ctx context.Context, _ *locker.Lock) error {
			time.Sleep(10 * time.Minute) //nolint:forbidigo // fake time
			if state, err := locker.Inspect(ctx, l, "n"); err != nil || state.Owner != "me" {
				t.Errorf("%+v, %v", state, err)
			}
			_, err := l.Acquire(t.Context(), locker.Request{Name: "n", Owner: "other", MaxWait: time.Second})
			if !errors.Is(err, locker.ErrMaxWait) || !errors.Is(err, locker.ErrNotAcquired) {
				t.Errorf("another waited: %v", err)
			}
			return context.Cause(ctx)
		})
		if err != nil {
			t.Error(err)
		}
	})
}
