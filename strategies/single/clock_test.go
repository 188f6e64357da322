package single_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/strategies/internal/locktest"
	"github.com/holdfast-go/holdfast/strategies/single"
)

// A waiter that was woken keeps the lock from other waiters for 500 ms, and no longer if the
// server's clock is set back, as by a failover.
func TestQueueWhenTheClockIsSetBack(t *testing.T) {
	t.Parallel()
	for what, tt := range map[string]struct {
		step    time.Duration
		refused bool
	}{"the clock goes on": {500 * time.Millisecond, true}, "500 ms have passed": {501 * time.Millisecond, false}, "set back": {-time.Hour, false}} {
		t.Run(what, func(t *testing.T) {
			run(t, single.Config{}, func(t *testing.T, b bench) {
				held := b.acquire(t, locker.Request{TTL: time.Minute})
				first, second := waits(t, lease.NewToken(), 2*time.Second), waits(t, lease.NewToken(), time.Second)
				for _, ctx := range []context.Context{first, second} {
					_ = b.refused(t, ctx, locker.Request{})
				}
				locktest.Release(t, held)
				b.m.SetTime(time.Now().Add(tt.step))
				if _, err := b.Acquire(second, locker.Request{Name: name}); errors.Is(err, locker.ErrNotAcquired) != tt.refused {
					t.Errorf("the second waiter: %v, want it refused: %v", err, tt.refused)
				}
			})
		})
	}
}
