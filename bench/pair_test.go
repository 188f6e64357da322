package bench

import (
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"
)

// batch is how many cycles each goroutine runs before the other side has its turn.
const batch = 50

// sample is the cost of one batch, per cycle.
type sample struct{ ns, allocs, bytes float64 }

// pair runs lock and bare in turn, batch by batch, each by that many goroutines, and reports the
// medians. cycle gets the goroutine's number.
func pair(b *testing.B, goroutines int, lock, bare func(goroutine int) error) {
	b.Helper()
	measure := func(cycle func(int) error) sample {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		start := time.Now()
		var wg sync.WaitGroup
		for g := range goroutines {
			wg.Go(func() {
				for range batch {
					if err := cycle(g); err != nil {
						b.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
		took := time.Since(start)
		runtime.ReadMemStats(&after)
		n := float64(goroutines * batch)
		return sample{
			ns: float64(took) / n, allocs: float64(after.Mallocs-before.Mallocs) / n,
			bytes: float64(after.TotalAlloc-before.TotalAlloc) / n,
		}
	}
	measure(bare) // connections, script caches
	measure(lock)

	var locks, bares []sample
	var ratios []float64
	b.ResetTimer()
	for n := 0; n < b.N || len(ratios) < 3; n += goroutines * batch {
		first, second := lock, bare
		if len(ratios)%2 == 1 { // neither side always goes first
			first, second = bare, lock
		}
		l, p := measure(first), measure(second)
		if len(ratios)%2 == 1 {
			l, p = p, l
		}
		locks, bares, ratios = append(locks, l), append(bares, p), append(ratios, l.ns/p.ns)
	}
	b.StopTimer()

	ns := func(s sample) float64 { return s.ns }
	allocs := func(s sample) float64 { return s.allocs }
	b.ReportMetric(0, "ns/op") // of both together: of no use
	b.ReportMetric(median(locks, ns)/1e3, "lock-us")
	b.ReportMetric(median(bares, ns)/1e3, "bare-us")
	b.ReportMetric(median(ratios, func(r float64) float64 { return r }), "ratio")
	b.ReportMetric(median(locks, allocs), "lock-allocs")
	b.ReportMetric(median(locks, allocs)-median(bares, allocs), "more-allocs")
}

func median[T any](samples []T, of func(T) float64) float64 {
	values := make([]float64, len(samples))
	for i, s := range samples {
		values[i] = of(s)
	}
	slices.Sort(values)
	return values[len(values)/2]
}
