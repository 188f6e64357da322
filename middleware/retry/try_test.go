package retry_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/middleware/retry"
	"github.com/holdfast-go/holdfast/strategies/single"
)

// Who tries for a while, and finds the lock held by others of the same process all the time, was refused: false, and no error.
func TestTryAgainstItsOwnProcess(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.Options{})
	for _, client := range clients.All {
		t.Run(client.Name, func(t *testing.T) {
			t.Parallel()
			drv := client.Open(t, server.Addr())
			l := wrap(t, locker.Must(single.New(drv, single.Config{})), retry.Config{})
			var ran, refused, failed atomic.Int64
			var last atomic.Value
			end := time.Now().Add(900 * time.Millisecond)
			var wg sync.WaitGroup
			for range 16 {
				wg.Go(func() {
					for time.Now().Before(end) {
						req := locker.Request{Name: client.Name, MaxWait: 100 * time.Millisecond}
						ok, err := locker.Try(t.Context(), l, req, func(context.Context, *locker.Lock) error {
							<-time.After(20 * time.Millisecond)
							return nil
						})
						switch {
						case err != nil:
							failed.Add(1)
							last.Store(err)
						case ok:
							ran.Add(1)
						default:
							refused.Add(1)
						}
					}
				})
			}
			wg.Wait()
			t.Logf("%d ran, %d were refused, %d failed: %v", ran.Load(), refused.Load(), failed.Load(), last.Load())
			if ran.Load() == 0 || refused.Load() == 0 {
				t.Error("want some that ran, and some that were refused")
			}
			if n := failed.Load(); n > (ran.Load()+refused.Load()+n)/20 { // a busy machine may take 100 ms for one command
				t.Errorf("%d failed on a healthy server", n)
			}
		})
	}
}
