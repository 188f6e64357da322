package retry_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/memredis"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/middleware/retry"
)

// Try returns false and no error while others of the process hold the lock all the time.
func TestTryAgainstItsOwnProcess(t *testing.T) {
	overRedis(t, func(t *testing.T, _ *memredis.Server, process func(retry.Config) locker.Locker) {
		l := process(retry.Config{})
		ran, refused := 0, 0
		end := time.Now().Add(2 * time.Second)
		var mu sync.Mutex
		var wg sync.WaitGroup
		for range 16 {
			wg.Go(func() {
				for time.Now().Before(end) {
					ok, err := locker.Try(t.Context(), l, locker.Request{Name: name, MaxWait: 100 * ms}, func(context.Context, *locker.Lock) error {
						elapse(20 * ms)
						return nil
					})
					check.OK(t, err)
					mu.Lock()
					if ok {
						ran++
					} else {
						refused++
					}
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		if ran == 0 || refused == 0 {
			t.Errorf("%d ran, and %d were refused; want some of both", ran, refused)
		}
	})
}
