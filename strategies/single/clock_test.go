package single_test

import (
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/strategies/internal/locktest"
	"github.com/holdfast-go/holdfast/strategies/single"
)

// A waiter that was woken keeps the lock from other waiters for 500 ms, and no longer if the
// server's clock is set back, as by a failover.
func TestQueueWhenTheClockIsSetBack(t *testing.T) {
	type test struct {
		step    time.Duration
		refused bool
	}
	eachRun(t, single.Config{}, map[string]test{
		"the clock goes on":  {500 * time.Millisecond, true},
		"500 ms have passed": {501 * time.Millisecond, false},
		"set back":           {-time.Hour, false},
	}, func(t *testing.T, b bench, tt test) {
		held := b.acquire(t, locker.Request{TTL: time.Minute})
		first, second := waits(t, lease.NewToken(), 2*time.Second), waits(t, lease.NewToken(), time.Second)
		_ = b.refused(t, first, locker.Request{})
		_ = b.refused(t, second, locker.Request{})
		locktest.Release(t, held)
		b.m.SetTime(time.Now().Add(tt.step))
		_, err := b.Acquire(second, locker.Request{Name: name})
		check.Equal(t, "the second waiter is refused", errors.Is(err, locker.ErrNotAcquired), tt.refused)
	})
}
