package redlock_test

import (
	"testing"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/middleware/retry"
	"github.com/holdfast-go/holdfast/strategies/redlock"
	"github.com/holdfast-go/holdfast/strategies/single"
)

// A release wakes a waiter with rare polls, however long it has waited.
func TestReleaseWakesOldWaiter(t *testing.T) {
	t.Parallel()
	check.EachInFakeTime(t, map[string]time.Duration{"for a second": time.Second, "for long": 20 * time.Second}, func(t *testing.T, waits time.Duration) {
		var nodes [2][]locker.Locker // of each process
		for range 3 {
			m := clients.NewMemory(t)
			for i := range nodes {
				nodes[i] = append(nodes[i], locker.Must(single.New(clients.OpenMemory(t, m), single.Config{})))
			}
		}
		holder := locker.Must(redlock.New(nodes[0], redlock.Config{}))
		rarely := retry.Config{Policy: func() backoff.BackOff { return backoff.NewConstantBackOff(time.Hour) }}
		waiter := locker.Chain(locker.Must(redlock.New(nodes[1], redlock.Config{})), locker.Must(retry.New(rarely)))
		req := locker.Request{Name: "job", TTL: time.Hour}
		held := locker.Must(holder.Acquire(t.Context(), req))
		got := make(chan time.Time, 1)
		go func() {
			lock := locker.Must(waiter.Acquire(t.Context(), req))
			got <- time.Now()
			check.OK(t, lock.Release(t.Context()))
		}()
		check.Advance(waits)
		released := time.Now()
		check.OK(t, held.Release(t.Context()))
		check.AtMost(t, "time from the release until the waiter had the lock", (<-got).Sub(released), 500*time.Millisecond)
		check.Advance(time.Second)
	})
}
