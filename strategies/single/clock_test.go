package single_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
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
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, single.Config{})
				waits := func(d time.Duration) context.Context {
					return lease.WithWaiting(t.Context(), lease.Waiting{ID: lease.NewToken(), Since: time.Now().Add(-d)})
				}
				req := locker.Request{Name: "job", TTL: time.Minute}
				held := locker.Must(b.Acquire(t.Context(), req))
				first, second := waits(2*time.Second), waits(time.Second)
				for _, ctx := range []context.Context{first, second} {
					if _, err := b.Acquire(ctx, req); !errors.Is(err, locker.ErrNotAcquired) {
						t.Fatal(err)
					}
				}
				if err := held.Release(t.Context()); err != nil {
					t.Fatal(err)
				}
				b.m.SetTime(time.Now().Add(tt.step))
				if _, err := b.Acquire(second, req); errors.Is(err, locker.ErrNotAcquired) != tt.refused {
					t.Errorf("the second waiter: %v, want it refused: %v", err, tt.refused)
				}
			})
		})
	}
}
