//nolint:forbidigo // fake time
package watchdog_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/strategies/watchdog"
)

// divided is a Locker without a server. While silent is set, locks with the prefix "silent" get no
// reply.
type divided struct {
	granting
	silent *atomic.Bool
	name   string
}

func (d divided) Acquire(ctx context.Context, req locker.Request) (*locker.Lock, error) {
	d.name = req.Name
	return grant(ctx, req, d), nil
}

// Server implements lease.Served.
func (d divided) Server() any { return strings.HasPrefix(d.name, "silent") }

func (d divided) Do(ctx context.Context, op lease.Op) (lease.Term, error) {
	if d.silent.Load() && strings.HasPrefix(d.name, "silent") {
		<-ctx.Done()
		return lease.Term{}, ctx.Err()
	}
	time.Sleep(2 * time.Millisecond) // a round trip
	return d.granting.Do(ctx, op)
}

// A Locker routes to two servers. A silent one costs the locks of the other nothing, however many
// there are, and the number of goroutines is bounded.
func TestSilenceAmongRenewals(t *testing.T) { //nolint:paralleltest // it counts goroutines
	for _, tt := range []struct{ silent, well, goroutines int }{{20, 30, 40}, {150, 50, 200}, {10_000, 200, 3*1024 + 64}} {
		t.Run(fmt.Sprint(tt.silent), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := divided{silent: new(atomic.Bool)}
				l := locker.Must(watchdog.New(watchdog.Config{}))(d)
				acquireSome := func(prefix string, n int) []*locker.Lock {
					locks := make([]*locker.Lock, n)
					for i := range locks {
						locks[i] = acquire(t, t.Context(), l, locker.Request{Name: fmt.Sprint(prefix, i)})
					}
					return locks
				}
				silent, well := acquireSome("silent", tt.silent), acquireSome("well", tt.well)
				time.Sleep(ttl) // so that the jitter spreads them
				d.silent.Store(true)
				before, most, least := runtime.NumGoroutine(), 0, ttl
				for start := time.Now(); time.Since(start) < 2*ttl; time.Sleep(100 * time.Millisecond) {
					most = max(most, runtime.NumGoroutine())
					for _, lock := range well {
						least = min(least, time.Until(lock.Deadline()))
					}
				}
				if lost := slices.DeleteFunc(slices.Clone(well), isHeld); len(lost) > 0 {
					t.Errorf("%d of %d locks on the server that answers were lost", len(lost), tt.well)
				}
				check.AtLeast(t, "what is left of a lease on the server that answers", least, ttl/2)
				check.AtMost(t, "goroutines", most, before+tt.goroutines)
				for _, lock := range silent {
					match(t, lock.Err(), locker.ErrLost)
				}
				d.silent.Store(false)
				for _, lock := range well {
					_ = lock.Release(t.Context())
				}
				time.Sleep(ttl)
			})
		})
	}
}

func isHeld(lock *locker.Lock) bool { return lock.Err() == nil }
