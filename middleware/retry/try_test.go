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
	"github.com/holdfast-go/holdfast/locker/locktrace"
	"github.com/holdfast-go/holdfast/middleware/retry"
	"github.com/holdfast-go/holdfast/strategies/single"
)

// TestTryAgainstItsOwnProcess checks that Try returns false, and no error, where others of the
// process hold the lock all the time. An attempt that hangs because the machine stands still is an
// error of its caller, and of those that it kept from making an attempt.
func TestTryAgainstItsOwnProcess(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.Options{})
	for _, client := range clients.All {
		t.Run(client.Name, func(t *testing.T) {
			t.Parallel()
			drv := client.Open(t, server.Addr())
			l := wrap(t, locker.Must(single.New(drv, single.Config{})), retry.Config{})
			const callers, wait = 16, 100 * time.Millisecond
			var ran, refused, stalled, behind atomic.Int64
			end := time.Now().Add(900 * time.Millisecond)
			var wg sync.WaitGroup
			for range callers {
				wg.Go(func() {
					for time.Now().Before(end) {
						var attempts int // of this call
						var slowest time.Duration
						ctx := locktrace.With(t.Context(), &locktrace.Trace{Attempt: func(_ context.Context, info locktrace.AttemptInfo) {
							attempts++
							slowest = max(slowest, info.Elapsed)
						}})
						ok, err := locker.Try(ctx, l, locker.Request{Name: client.Name, MaxWait: wait}, func(context.Context, *locker.Lock) error {
							<-time.After(20 * time.Millisecond)
							return nil
						})
						switch {
						case err != nil && slowest >= wait/2:
							stalled.Add(1)
						case err != nil && attempts == 0:
							behind.Add(1)
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
			t.Logf("%d ran, %d were refused, %d had no answer in %v, and %d waited behind those", ran.Load(), refused.Load(), stalled.Load(), wait/2, behind.Load())
			if behind.Load() > callers*stalled.Load() {
				t.Errorf("%d calls that made no attempt returned an error, behind %d that had no answer", behind.Load(), stalled.Load())
			}
			if ran.Load() == 0 || refused.Load() == 0 {
				t.Error("want some that ran, and some that were refused")
			}
		})
	}
}
