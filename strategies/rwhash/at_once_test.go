package rwhash_test

import (
	"sync"
	"testing"

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
