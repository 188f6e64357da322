package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bsm/redislock"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/strategies/single"
)

const (
	impatientCallers = 500
	impatientFor     = 5 * time.Second
)

// BenchmarkImpatient has 500 callers acquire and release a name of their own each, under contexts
// that end at random within the patience, beside bsm/redislock. It reports the grants per second,
// and what is left two seconds after the callers went: goroutines, and commands per second.
func BenchmarkImpatient(b *testing.B) {
	server := redistest.Start(b, redistest.Options{})
	for _, patience := range []time.Duration{50 * time.Millisecond, 20 * time.Millisecond} {
		for _, obey := range []bool{true, false} {
			b.Run(fmt.Sprintf("redislock%s/patience=%v", map[bool]string{false: "-defaults"}[obey], patience), func(b *testing.B) {
				c := redis.NewClient(&redis.Options{Addr: server.Addr(), ContextTimeoutEnabled: obey})
				b.Cleanup(func() { _ = c.Close() })
				l := redislock.New(c)
				impatient(b, server, patience, func(ctx context.Context, name string) error {
					lock, err := l.Obtain(ctx, name, ttl, nil)
					if err != nil {
						return err
					}
					return lock.Release(context.Background())
				})
			})
		}
		for _, c := range clients {
			b.Run(fmt.Sprintf("%s/patience=%v", c.name, patience), func(b *testing.B) {
				drv, _ := c.open(b, server.Addr())
				b.Cleanup(func() { _ = drv.Close() })
				l := locker.Must(single.New(drv, single.Config{}))
				impatient(b, server, patience, func(ctx context.Context, name string) error {
					lock, err := l.Acquire(ctx, locker.Request{Name: name, TTL: ttl})
					if err != nil {
						return err
					}
					return lock.Release(context.Background())
				})
			})
		}
	}
}

func impatient(
	b *testing.B, server *redistest.Server, patience time.Duration,
	cycle func(ctx context.Context, name string) error,
) {
	b.Helper()
	server.MustCommand(b, "FLUSHALL")
	var grants, failures atomic.Int64
	before := runtime.NumGoroutine()
	for b.Loop() {
		var wg sync.WaitGroup
		end := time.Now().Add(impatientFor)
		for i := range impatientCallers {
			name := fmt.Sprintf("bench:%d", i)
			wg.Go(func() {
				for time.Now().Before(end) {
					ctx, cancel := context.WithTimeout(context.Background(), rand.N(patience))
					if cycle(ctx, name) == nil {
						grants.Add(1)
					} else {
						failures.Add(1)
					}
					cancel()
				}
			})
		}
		wg.Wait()
	}
	time.Sleep(2 * time.Second) //nolint:forbidigo // what is left after that time is the measure
	left := runtime.NumGoroutine() - before
	commands := server.Processed(b)
	time.Sleep(time.Second) //nolint:forbidigo // the same
	commands = server.Processed(b) - commands
	keys := server.MustCommand(b, "DBSIZE")
	for start := time.Now(); time.Since(start) < 40*time.Second && server.MustCommand(b, "DBSIZE") != int64(0); {
		time.Sleep(100 * time.Millisecond) //nolint:forbidigo // it polls a server
	}
	b.ReportMetric(float64(grants.Load())/impatientFor.Seconds()/float64(b.N), "grants/s")
	b.ReportMetric(float64(failures.Load())/impatientFor.Seconds()/float64(b.N), "given-up/s")
	b.ReportMetric(float64(left), "goroutines-left")
	b.ReportMetric(float64(commands), "commands/s-left")
	b.ReportMetric(float64(keys.(int64)), "keys-left")
	b.ReportMetric(0, "ns/op")
}
