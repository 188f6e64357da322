package bench

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/locker"
)

// BenchmarkSeveral is locker.AcquireAll of free names, beside the same names one after another. It
// measures the acquires alone. The two take turns.
func BenchmarkSeveral(b *testing.B) {
	server := redistest.Start(b, redistest.Options{})
	ctx := context.Background()
	for _, c := range clients {
		for _, n := range []int{2, 8, 64} {
			b.Run(fmt.Sprintf("%s/names=%d", c.name, n), func(b *testing.B) {
				drv, _ := c.open(b, server.Addr())
				defer drv.Close()
				l := locker.Must(holdfast.New(drv, holdfast.Config{}))
				var reqs []locker.Request
				for i := range n {
					reqs = append(reqs, locker.Request{Name: fmt.Sprintf("bench:%d", i), TTL: ttl})
				}
				acquire := [2]func(context.Context, locker.Locker, []locker.Request) (func(context.Context) error, error){
					together, inOrder,
				}
				var took [2][]float64
				var ratios []float64
				b.ResetTimer()
				for i := 0; i < b.N || i < 20; i++ {
					var us [2]float64
					for turn := range us {
						side := (i + turn) % 2 // neither side always goes first
						start := time.Now()
						release, err := acquire[side](ctx, l, reqs)
						us[side] = float64(time.Since(start).Nanoseconds()) / 1e3
						check.Must(b, err)
						check.Must(b, release(ctx))
						took[side] = append(took[side], us[side])
					}
					ratios = append(ratios, us[0]/us[1])
				}
				b.StopTimer()
				middle := func(values []float64) float64 { return median(values, func(v float64) float64 { return v }) }
				b.ReportMetric(0, "ns/op") // of both together: of no use
				b.ReportMetric(middle(took[0]), "together-us")
				b.ReportMetric(middle(took[1]), "in-order-us")
				b.ReportMetric(middle(ratios), "ratio")
			})
		}
	}
}

// together acquires the locks of reqs by locker.AcquireAll.
func together(ctx context.Context, l locker.Locker, reqs []locker.Request) (func(context.Context) error, error) {
	locks, err := locker.AcquireAll(ctx, l, reqs)
	if err != nil {
		return nil, err
	}
	return locks.Release, nil
}

// inOrder acquires the locks of reqs one after another.
func inOrder(ctx context.Context, l locker.Locker, reqs []locker.Request) (func(context.Context) error, error) {
	var locks []*locker.Lock
	for _, req := range reqs {
		lock, err := l.Acquire(ctx, req)
		if err != nil {
			return nil, err
		}
		locks = append(locks, lock)
	}
	return func(ctx context.Context) error {
		for _, lock := range locks {
			if err := lock.Release(ctx); err != nil {
				return err
			}
		}
		return nil
	}, nil
}
