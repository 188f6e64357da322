//nolint:forbidigo // fake time
package watchdog_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/strategies/watchdog"
)

// divided is slow, and its Leases name their server: that of the prefix "silent", or the other.
type divided struct{ slow }

func (d divided) Acquire(ctx context.Context, req locker.Request) (*locker.Lock, error) {
	d.name = req.Name
	return grant(ctx, req, d), nil
}

// Server returns the server: see lease.Lease.
func (d divided) Server() any { return strings.HasPrefix(d.name, "silent") }

// A Locker routes to two servers. A silent one costs the locks of the other nothing, however many
// there are, and the number of goroutines is bounded.
func TestSilenceAmongRenewals(t *testing.T) { //nolint:paralleltest // it counts goroutines
	for _, tt := range []struct{ silent, well, goroutines int }{{20, 30, 40}, {150, 50, 200}, {10_000, 200, 3*1024 + 64}} {
		t.Run(fmt.Sprint(tt.silent), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := divided{slow{takes: 2 * time.Millisecond, silent: new(atomic.Bool)}}
				l := locker.Must(watchdog.New(watchdog.Config{}))(d)
				silent := acquireMany(t, t.Context(), l, tt.silent, "silent", ttl)
				well := acquireMany(t, t.Context(), l, tt.well, "well", ttl)
				time.Sleep(ttl) // so that the jitter spreads them
				d.silent.Store(true)
				before, most, least := runtime.NumGoroutine(), 0, ttl
				for start := time.Now(); time.Since(start) < 2*ttl; time.Sleep(100 * time.Millisecond) {
					most = max(most, runtime.NumGoroutine())
					for _, lock := range well {
						least = min(least, time.Until(lock.Deadline()))
					}
				}
				check.AtLeast(t, "what is left of a lease on the server that answers", least, ttl/2)
				check.AtMost(t, "goroutines", most, before+tt.goroutines)
				for _, lock := range silent {
					match(t, lock.Err(), locker.ErrLost)
				}
				d.silent.Store(false)
				release(t, well...)
				time.Sleep(ttl)
			})
		})
	}
}
