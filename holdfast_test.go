package holdfast_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lockertest"
	"github.com/holdfast-go/holdfast/locker/locktrace"
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

// The chain waits: the second acquire returns when the first lock is released.
func TestNewWaits(t *testing.T) {
	t.Parallel()
	client := redis.NewClient(&redis.Options{Addr: miniredis.RunT(t).Addr()})
	t.Cleanup(func() { _ = client.Close() })
	drv := locker.Must(goredis.New(client))
	t.Cleanup(func() { _ = drv.Close() })
	l := locker.Must(holdfast.New(drv, holdfast.Config{}))

	first, err := l.Acquire(t.Context(), locker.Request{Name: "n"})
	if err != nil {
		t.Fatal(err)
	}
	second := make(chan error, 1)
	waiting := make(chan struct{})
	ctx := locktrace.With(t.Context(), onWaiting(waiting))
	go func() {
		lock, err := l.Acquire(ctx, locker.Request{Name: "n"})
		if err == nil {
			err = lock.Release(t.Context())
		}
		second <- err
	}()
	<-waiting
	if err := first.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-second; err != nil {
		t.Errorf("the one who waited: %v", err)
	}
}

// The chain renews: work that takes longer than the TTL keeps its lock.
func TestNewRenews(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := locker.Must(holdfast.New(clients.OpenMemory(t, clients.NewMemory(t)), holdfast.Config{}))
		err := locker.Do(t.Context(), l, locker.Request{Name: "n"}, func(ctx context.Context, _ *locker.Lock) error {
			time.Sleep(10 * time.Minute) //nolint:forbidigo // fake time
			return context.Cause(ctx)
		})
		if err != nil {
			t.Error(err)
		}
	})
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

// onWaiting closes waiting at the first wait.
func onWaiting(waiting chan struct{}) *locktrace.Trace {
	var once sync.Once
	return &locktrace.Trace{Waiting: func(context.Context, locktrace.WaitingInfo) { once.Do(func() { close(waiting) }) }}
}
