package watchdog_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/internal/effort"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/strategies/single"
	"github.com/holdfast-go/holdfast/strategies/watchdog"
)

// counted is a driver that counts the batches, the calls in them, and those that were executed.
type counted struct {
	driver.Driver
	batches, calls, executed atomic.Int64
}

func (c *counted) EvalMany(ctx context.Context, calls []driver.Call) []driver.Result {
	c.batches.Add(1)
	c.calls.Add(int64(len(calls)))
	results := c.Driver.(driver.Batcher).EvalMany(ctx, calls)
	for _, r := range results {
		if r.Err == nil {
			c.executed.Add(1)
		}
	}
	return results
}

// Eval counts the calls that are resent alone because their batch was not answered in time.
func (c *counted) Eval(ctx context.Context, script *driver.Script, keys, args []string) (driver.Reply, error) {
	c.calls.Add(1)
	reply, err := c.Driver.Eval(ctx, script, keys, args)
	if err == nil {
		c.executed.Add(1)
	}
	return reply, err
}

// executed returns how many scripts the server ran by their digest.
func executed(t *testing.T, server *redistest.Server) (n int64) {
	t.Helper()
	info, ok := server.MustCommand(t, "INFO", "commandstats").(string)
	for line := range strings.Lines(info) {
		if stats, is := strings.CutPrefix(line, "cmdstat_evalsha:calls="); is {
			_, err := fmt.Sscanf(stats, "%d,", &n)
			match(t, err)
		}
	}
	if !ok || n == 0 {
		t.Fatalf("INFO commandstats answered %q", info)
	}
	return n
}

// Many locks on a real server, over each client: each is renewed when it is due and no sooner, few
// round trips and few goroutines suffice, and every call is executed exactly once.
func TestManyLocks(t *testing.T) { //nolint:paralleltest // it counts goroutines
	redistest.Need(t)
	const ttl = 3 * time.Second
	locks := effort.Of(500, 500, 2000)
	for _, client := range clients.All {
		t.Run(client.Name, func(t *testing.T) {
			server := redistest.Start(t, redistest.Options{})
			drv := &counted{Driver: client.Open(t, server.Addr())}
			l := locker.Must(watchdog.New(watchdog.Config{}))(locker.Must(single.New(drv, single.Config{})))
			warm := acquire(t, t.Context(), l, locker.Request{TTL: ttl})
			match(t, warm.Renew(t.Context(), 0))
			match(t, warm.Release(t.Context()))
			asked := executed(t, server)
			drv.calls.Store(0)
			drv.executed.Store(0)

			start := time.Now()
			all := acquireAtOnce(t, l, locks, locker.Request{TTL: ttl})
			goroutines, most := runtime.NumGoroutine(), 0
			for held := time.Now(); time.Since(held) < ttl/2*3 || drv.calls.Load() < 4*int64(locks); wait(t, time.Millisecond) {
				most = max(most, runtime.NumGoroutine())
				if time.Since(held) > 10*ttl {
					t.Fatalf("%d renewals in ten TTLs", drv.calls.Load())
				}
			}
			batches, calls := drv.batches.Load(), drv.calls.Load()
			took := time.Since(start)
			if limit := int64(locks) * (int64(took/(ttl/3-ttl/30)) + 1); calls > limit {
				t.Errorf("%d renewals in %v, want %d at most", calls, took, limit)
			}
			if batches > calls/10 {
				t.Errorf("%d renewals took %d round trips", calls, batches)
			}
			if most > goroutines+24 {
				t.Errorf("%d goroutines, %d before", most, goroutines)
			}
			least := drv.executed.Load() // others may be on their way
			now := executed(t, server) - asked
			if most := drv.calls.Load(); now < least || now > most {
				t.Errorf("the server was asked for %d scripts, want the %d to %d renewals", now, least, most)
			}
			t.Logf("%d renewals in %d round trips, up to %d goroutines more", calls, batches, most-goroutines)
			releaseAtOnce(t, all, func(*locker.Lock) bool { return true })
		})
	}
}
