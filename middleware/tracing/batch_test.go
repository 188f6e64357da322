package tracing_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/memredis"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/middleware/tracing"
	"github.com/holdfast-go/holdfast/strategies/single"
)

// counting counts the commands of a driver.
type counting struct {
	driver.Driver
	sent atomic.Int64
}

func (c *counting) SetNX(ctx context.Context, key, value string, ttl time.Duration) (bool, error) {
	c.sent.Add(1)
	return c.Driver.SetNX(ctx, key, value, ttl)
}

func (c *counting) Eval(ctx context.Context, s *driver.Script, keys, args []string) (driver.Reply, error) {
	c.sent.Add(1)
	return c.Driver.Eval(ctx, s, keys, args)
}

// Several locks are acquired by one command although each is traced, and who is refused one of them
// is linked to the span in which that was asked for.
func TestSeveralLocksByOneCommand(t *testing.T) { //nolint:tparallel // overRedis calls it
	t.Parallel()
	reqs := []locker.Request{{Name: "{x}a", Note: "nightly", NoWait: true}, {Name: "{x}b"}, {Name: "{x}c"}}
	for name, tt := range map[string]struct {
		cfg    tracing.Config
		within bool // a span
		linked bool
	}{
		"in a span":           {within: true, linked: true},
		"in no span":          {},
		"in a span, unlinked": {cfg: tracing.Config{NoLink: true}, within: true},
	} {
		t.Run(name, func(t *testing.T) {
			overRedis(t, func(t *testing.T, _ *memredis.Server, start func(int, tracing.Config) *process) {
				p, waiter := start(0, tracing.Config{}), start(0, tracing.Config{})
				drv := &counting{Driver: p.driver}
				l := locker.Chain(locker.Must(single.New(drv, single.Config{})), p.middleware(tt.cfg))
				ctx, want := t.Context(), []string{}
				if tt.within {
					within, span := p.provider.Tracer("").Start(ctx, "caller")
					defer span.End()
					if ctx = within; tt.linked {
						want = append(want, toward(span.SpanContext()))
					}
				}
				locks, err := locker.AcquireAll(ctx, l, reqs)
				if err != nil || drv.sent.Load() != 1 {
					t.Fatalf("AcquireAll: %v after %d commands, want 1", err, drv.sent.Load())
				}
				check.Equal(t, "ended spans", len(p.Ended()), len(reqs))
				_, err = waiter.locker.Acquire(t.Context(), locker.Request{Name: "{x}a", NoWait: true})
				if held, ok := errors.AsType[*locker.ContentionError](err); !ok || held.Note != "nightly" {
					t.Errorf("refused with %v", err)
				}
				equal(t, "links of one that was refused", linked(waiter.only(t, "acquire lock")), want)

				p.Reset()
				_, err = locker.AcquireAll(ctx, l, reqs[:2])
				if !errors.Is(err, locker.ErrNotAcquired) || drv.sent.Load() != 2 {
					t.Errorf("AcquireAll of held locks: %v after %d commands, want 2", err, drv.sent.Load())
				}
				equal(t, "links of several that were refused", linked(p.only(t, "acquire lock")), want)
				check.OK(t, locks.Release(ctx))
			})
		})
	}
}
