//nolint:forbidigo // fake time
package retry_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/internal/memnet"
	"github.com/holdfast-go/holdfast/internal/memredis"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/middleware/retry"
	"github.com/holdfast-go/holdfast/strategies/single"
)

// Try returns false, and no error, where others of the process hold the lock all the time.
func TestTryAgainstItsOwnProcess(t *testing.T) {
	t.Parallel()
	for _, client := range clients.All {
		t.Run(client.Name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { tryAgainstItsOwnProcess(t, client) })
		})
	}
}

func tryAgainstItsOwnProcess(t *testing.T, client clients.Client) {
	t.Cleanup(func() { time.Sleep(time.Minute) }) // what closed clients leave behind ends
	network := memnet.New()
	network.Latency = 50 * time.Microsecond
	drv := client.OpenOn(t, network, memredis.Start(t, network).Addr())
	l := wrap(t, locker.Must(single.New(drv, single.Config{})), retry.Config{})
	const callers, wait = 16, 100 * time.Millisecond
	var ran, refused atomic.Int64
	end := time.Now().Add(900 * time.Millisecond)
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			for time.Now().Before(end) {
				ok, err := locker.Try(t.Context(), l, locker.Request{Name: "busy", MaxWait: wait}, func(context.Context, *locker.Lock) error {
					time.Sleep(20 * time.Millisecond)
					return nil
				})
				switch {
				case err != nil:
					t.Errorf("Try: %v", err)
				case ok:
					ran.Add(1)
				default:
					refused.Add(1)
				}
			}
		})
	}
	wg.Wait()
	if ran.Load() == 0 || refused.Load() == 0 {
		t.Errorf("%d ran and %d were refused, want some of both", ran.Load(), refused.Load())
	}
}
