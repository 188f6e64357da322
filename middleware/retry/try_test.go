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
			const wait = 100 * time.Millisecond
			var ran, refused, stalled atomic.Int64
			end := time.Now().Add(900 * time.Millisecond)
			var wg sync.WaitGroup
			for range 16 {
				wg.Go(func() {
					for time.Now().Before(end) {
						var slowest time.Duration // attempt of this call
						ctx := locker.WithTrace(t.Context(), &locker.Trace{Attempt: func(_ context.Context, info locker.AttemptInfo) {
							slowest = max(slowest, info.Elapsed)
						}})
						ok, err := locker.Try(ctx, l, locker.Request{Name: client.Name, MaxWait: wait}, func(context.Context, *locker.Lock) error {
							<-time.After(20 * time.Millisecond)
							return nil
						})
						switch {
						case err != nil && slowest >= wait/2: // the machine stood still
							stalled.Add(1)
						case err != nil:
							t.Errorf("Try with attempts of %v at most: %v", slowest, err)
						case ok:
							ran.Add(1)
						default:
							refused.Add(1)
						}
					}
				})
			}
			wg.Wait()
			t.Logf("%d ran, %d were refused, %d had no answer in %v", ran.Load(), refused.Load(), stalled.Load(), wait/2)
			if ran.Load() == 0 || refused.Load() == 0 {
				t.Error("want some that ran, and some that were refused")
			}
		})
	}
}
