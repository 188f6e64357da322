package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"
)

// measurement is the result of a phase. Times are in seconds.
type measurement struct {
	Phase      string   `json:"phase"`
	Goroutines int      `json:"goroutines"`
	Count      int      `json:"count"` // of locks acquired and released, or handed over
	PerSecond  float64  `json:"perSecond"`
	P50        float64  `json:"p50"`
	P90        float64  `json:"p90"`
	P99        float64  `json:"p99"`
	Max        float64  `json:"max"`
	Polled     int      `json:"polled,omitempty"` // hand-overs without a wake-up by the release
	Histogram  []bucket `json:"histogram"`
}

// bucket counts the times less than Below, and not less than Below of the bucket before.
type bucket struct {
	Below float64 `json:"below"`
	Count int     `json:"count"`
}

func newMeasurement(goroutines int, took []time.Duration, lasted time.Duration) measurement {
	m := measurement{Goroutines: goroutines, Count: len(took), PerSecond: float64(len(took)) / lasted.Seconds(), Histogram: []bucket{}}
	if len(took) == 0 {
		return m
	}
	slices.Sort(took)
	m.P50, m.P90, m.P99, m.Max = percentile(took, 50), percentile(took, 90), percentile(took, 99), percentile(took, 100)
	m.Histogram = histogram(took)
	return m
}

// percentile returns the time that p per cent of the sorted times do not exceed.
func percentile(sorted []time.Duration, p float64) float64 {
	i := int(math.Ceil(p / 100 * float64(len(sorted))))
	return sorted[max(i, 1)-1].Seconds()
}

// histogram counts the sorted times between the limits 1, 2, 5, 10, 20, 50 ... microseconds, from
// the first bucket with any to the last.
func histogram(sorted []time.Duration) (all []bucket) {
	limit := time.Microsecond
	for i := 0; len(sorted) > 0; i++ {
		n, _ := slices.BinarySearch(sorted, limit)
		if n > 0 || all != nil {
			all = append(all, bucket{limit.Seconds(), n})
		}
		sorted = sorted[n:]
		if limit *= 2; i%3 == 1 {
			limit = limit / 4 * 5
		}
	}
	return all
}

// print prints a measurement, for people with a picture of its times.
func (m measurement) print(w io.Writer, asJSON bool) error {
	if asJSON {
		return printJSON(w, m)
	}
	var b strings.Builder
	what := "locks acquired and released"
	if m.Phase == "hand-over" {
		what = "locks passed between two clients"
	}
	fmt.Fprintf(&b, "%s: %d %s, %.0f per second\n", m.Phase, m.Count, what, m.PerSecond)
	fmt.Fprintf(&b, "  half within %.3g ms, 90 %% within %.3g ms, 99 %% within %.3g ms, the slowest in %.3g ms\n", 1e3*m.P50, 1e3*m.P90, 1e3*m.P99, 1e3*m.Max)
	if m.Polled > 0 {
		fmt.Fprintf(&b, "  %d were not woken by the release: see holdfast check\n", m.Polled)
	}
	most := 1
	for _, one := range m.Histogram {
		most = max(most, one.Count)
	}
	for _, one := range m.Histogram {
		bar := strings.Repeat("#", (one.Count*40+most-1)/most)
		fmt.Fprintf(&b, "  < %7g ms %9d %s\n", 1e3*one.Below, one.Count, bar)
	}
	_, err := io.WriteString(w, b.String())
	return printed(err)
}
