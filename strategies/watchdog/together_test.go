//nolint:forbidigo // fake time
package watchdog_test

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver/adapter"
	"github.com/holdfast-go/holdfast/strategies/single"
	"github.com/holdfast-go/holdfast/strategies/watchdog"
)

// pipelined is a driver that counts scripts and round trips. A round trip with scripts takes time;
// locks are acquired at once.
type pipelined struct {
	adapter.Driver
	renewals, trips atomic.Int32
}

func newPipelined() *pipelined {
	d := new(pipelined)
	p := adapter.NewPipeline(adapter.Client{Connections: 16, Send: func(_ context.Context, commands []*adapter.Command) {
		for _, c := range commands {
			c.Begin()
			if c.Words[0] == "SET" {
				c.Answer("OK", nil)
				return
			}
		}
		time.Sleep(200 * time.Microsecond)
		for _, c := range commands {
			d.renewals.Add(1)
			c.Answer(int64(1), nil)
		}
		d.trips.Add(1)
	}})
	d.Pipelines = p
	return d
}

// Renewals due together take about the minimum number of round trips, and few goroutines.
func TestRenewalsTravelTogether(t *testing.T) { //nolint:paralleltest // it counts goroutines
	const locked, perTrip = 5000, 32
	for _, tt := range []struct {
		jitter float64
		bursts int32 // moments with due renewals
	}{{1e-12, 1}, {0.1, 8}} {
		t.Run(fmt.Sprint(tt.bursts), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newPipelined()
				l := locker.Chain(locker.Must(single.New(d, single.Config{})), locker.Must(watchdog.New(watchdog.Config{Jitter: tt.jitter})))
				locks := make([]*locker.Lock, locked)
				for i := range locks {
					locks[i] = acquire(t, t.Context(), l, locker.Request{Name: fmt.Sprint(i)})
				}
				synctest.Wait()
				before, most := runtime.NumGoroutine(), 0
				d.renewals.Store(0)
				d.trips.Store(0)
				for start := time.Now(); time.Since(start) < ttl/2; time.Sleep(100 * time.Microsecond) {
					most = max(most, runtime.NumGoroutine())
				}
				check.Within(t, "renewals", d.renewals.Load(), locked, 2*locked)
				check.AtMost(t, "round trips", d.trips.Load(), d.renewals.Load()/perTrip+8*tt.bursts) // a burst begins with small ones
				check.AtMost(t, "goroutines", most, before+1024+8)                                    // workers, flights and timers
				release(t, locks...)
				check.OK(t, d.Close())
			})
		})
	}
}
