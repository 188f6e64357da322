package semaphore_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/locker"
)

// A process with many waiters does not keep permits from one with a single waiter: that has its
// turn after one hold of each other process at most.
func TestProcessesTakeTurns(t *testing.T) {
	run(t, 2, func(t *testing.T, b bench) {
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		crowd := process(b)
		for range 20 {
			wg.Go(func() {
				for {
					lock, err := crowd.Acquire(ctx, locker.Request{Name: name})
					if err != nil {
						return
					}
					sleep(50 * time.Millisecond)
					_ = lock.Release(t.Context())
				}
			})
		}
		single := process(b)
		for range 5 {
			sleep(500 * time.Millisecond)
			begin := time.Now()
			lock := take(t, single, locker.Request{})
			// The 20 of the crowd that came before hold for half a second in all.
			if waited := time.Since(begin); waited > 700*time.Millisecond {
				t.Errorf("waited %v beside a crowd", waited)
			}
			release(t, lock)
		}
		cancel()
		wg.Wait()
		sleep(time.Minute)
		b.gone(t)
	})
}
