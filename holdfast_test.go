package holdfast_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lockertest"
	"github.com/holdfast-go/holdfast/middleware/retry"
	"github.com/holdfast-go/holdfast/providers/goredis"
	"github.com/holdfast-go/holdfast/strategies/single"
	"github.com/holdfast-go/holdfast/strategies/watchdog"
)

func TestMain(m *testing.M) { clients.VerifyNoLeaks(m) }

func TestNewRefusesWhatItsPartsRefuse(t *testing.T) {
	t.Parallel()
	client := redis.NewClient(&redis.Options{Addr: miniredis.RunT(t).Addr()})
	t.Cleanup(func() { _ = client.Close() })
	drv := locker.Must(goredis.New(client))
	t.Cleanup(func() { _ = drv.Close() })
	for name, cfg := range map[string]holdfast.Config{
		"single":   {Single: single.Config{TTL: -time.Second}},
		"watchdog": {Watchdog: watchdog.Config{MaxRenewals: -1}},
		"retry":    {Retry: retry.Config{MaxAttempts: -1}},
	} {
		if l, err := holdfast.New(drv, cfg); !errors.Is(err, locker.ErrInvalid) || l != nil {
			t.Errorf("%s: got %v, %v; want ErrInvalid", name, l, err)
		}
	}
	if l, err := holdfast.New(nil, holdfast.Config{}); !errors.Is(err, locker.ErrInvalid) || l != nil {
		t.Errorf("nil driver: got %v, %v; want ErrInvalid", l, err)
	}
}

// TestWrap checks that the chain is the same over any strategy, and that Inspect reaches through
// it.
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

func TestWrapRefuses(t *testing.T) {
	t.Parallel()
	tests := []struct {
		what     string
		strategy locker.Locker
		cfg      holdfast.Config
	}{
		{"no strategy", nil, holdfast.Config{}},
		{"the configuration of another strategy", lockertest.New(), holdfast.Config{Single: single.Config{TTL: time.Second}}},
		{"a bad watchdog", lockertest.New(), holdfast.Config{Watchdog: watchdog.Config{MaxRenewals: -1}}},
		{"a bad retry", lockertest.New(), holdfast.Config{Retry: retry.Config{MaxAttempts: -1}}},
	}
	for _, tt := range tests {
		if l, err := holdfast.Wrap(tt.strategy, tt.cfg); !errors.Is(err, locker.ErrInvalid) || l != nil {
			t.Errorf("%s: got %v, %v; want ErrInvalid", tt.what, l, err)
		}
	}
}
