//realtime:ok each test runs in a bubble, by run of tools_test.go

package rwhash_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
)

// Concurrent operations on one Lock leave nothing behind.
func TestAllOperationsAtOnce(t *testing.T) {
	run(t, func(t *testing.T, b bench) {
		for range 20 {
			lock := b.read(t, locker.Request{Fenced: true})
			var wg sync.WaitGroup
			for i := range 4 {
				wg.Go(func() { _ = lock.Upgrade(t.Context()) })
				wg.Go(func() { _ = lock.Downgrade(t.Context()) })
				wg.Go(func() { _ = lock.Renew(t.Context(), 0) })
				wg.Go(func() { _, _ = lock.Handle(), lock.Fence() })
				if i == 3 {
					wg.Go(func() { match(t, lock.Release(t.Context())) })
				}
			}
			wg.Wait()
			b.free(t)
		}
	})
}

// An upgrade with an unknown outcome was executed, and the counter is gone since. The next upgrade
// finds nothing to do, and the writer still gets a new token.
func TestUpgradeOfUnknownOutcomeIsFenced(t *testing.T) {
	run(t, func(t *testing.T, b bench) {
		release(t, b.write(t, locker.Request{Fenced: true}))
		lock := b.read(t, locker.Request{Fenced: true, TTL: time.Hour})
		token := lock.Fence()
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		b.drv.Then(fault{Lose: true}, fault{Hang: true})
		match(t, lock.Upgrade(ctx), locker.ErrUnknownOutcome)
		b.m.Del(counter)
		match(t, lock.Upgrade(t.Context()))
		check.Equal(t, "mode", lock.Mode(), locker.Exclusive)
		check.AtLeast(t, "token", lock.Fence(), token+1)
		release(t, lock)
	})
}
