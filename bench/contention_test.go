package bench

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/middleware/retry"
	"github.com/holdfast-go/holdfast/strategies/single"
)

// crowd is how many goroutines contend for one name.
const crowd = 64

// BenchmarkContention is one turn of 64 goroutines of one process on one name: from wanting the
// lock to having given it back. It reports how many attempts were in flight at once at the most,
// and how the longest wait compares to the mean.
func BenchmarkContention(b *testing.B) {
	server := redistest.Start(b, redistest.Options{})
	for _, c := range clients {
		b.Run(c.name, func(b *testing.B) {
			drv, _ := c.open(b, server.Addr())
			defer drv.Close()
			contend(b, locker.Must(single.New(drv, single.Config{})))
		})
	}
}

func contend(b *testing.B, strategy locker.Locker) {
	var flying, most, attempts atomic.Int64
	counting := locker.Func(func(ctx context.Context, req locker.Request) (*locker.Lock, error) {
		now := flying.Add(1)
		defer flying.Add(-1)
		for old := most.Load(); now > old; old = most.Load() {
			if most.CompareAndSwap(old, now) {
				break
			}
		}
		attempts.Add(1)
		return strategy.Acquire(ctx, req)
	})
	l := locker.Chain(counting, locker.Must(retry.New(retry.Config{})))

	var left atomic.Int64
	left.Store(int64(max(b.N, 4*crowd)))
	turns := left.Load()
	var mu sync.Mutex
	var total, longest time.Duration
	var wg sync.WaitGroup
	b.ResetTimer()
	for range crowd {
		wg.Go(func() {
			for left.Add(-1) >= 0 {
				start := time.Now()
				lock, err := l.Acquire(context.Background(), locker.Request{Name: "bench:crowd", TTL: ttl})
				waited := time.Since(start)
				if err == nil {
					err = lock.Release(context.Background())
				}
				if err != nil {
					b.Error(err)
					return
				}
				mu.Lock()
				total, longest = total+waited, max(longest, waited)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	mean := total / time.Duration(turns)
	b.ReportMetric(float64(most.Load()), "in-flight")
	b.ReportMetric(float64(attempts.Load())/float64(turns), "attempts/turn")
	b.ReportMetric(mean.Seconds()*1e3, "mean-wait-ms")
	b.ReportMetric(float64(longest)/float64(mean), "longest/mean")
}
