package stats

import (
	"encoding/json"
	"fmt"
	"math"
	"math/bits"
	"time"
)

// A bucket spans 1/32 of its value at most, so a percentile is at most 3 % too large.
const (
	stepBits = 5
	steps    = 1 << stepBits
	buckets  = (64 - stepBits) * steps
)

// Histogram counts durations in buckets that grow with the duration, as HdrHistogram does. It takes
// the same memory for any number of them, and histograms of several processes add up. The zero
// Histogram is empty. It is not safe for concurrent use.
type Histogram struct {
	counts [buckets]int64
	total  int64
	max    time.Duration
}

// bucket returns the number of the bucket of d.
func bucket(d time.Duration) int {
	v := uint64(max(d, 0))
	if v < 2*steps {
		return int(v)
	}
	shift := bits.Len64(v) - stepBits - 1
	return shift*steps + int(v>>shift)
}

// limit returns the largest duration in bucket b.
func limit(b int) time.Duration {
	if b < 2*steps {
		return time.Duration(b)
	}
	shift := b/steps - 1
	return time.Duration(uint64(b%steps+steps+1)<<shift - 1)
}

// Add counts d. A negative duration counts as 0.
func (h *Histogram) Add(d time.Duration) {
	h.counts[bucket(d)]++
	h.total++
	h.max = max(h.max, d)
}

// Merge adds the counts of other.
func (h *Histogram) Merge(other *Histogram) {
	for b, n := range other.counts {
		h.counts[b] += n
	}
	h.total += other.total
	h.max = max(h.max, other.max)
}

// Total returns how many durations were counted.
func (h *Histogram) Total() int64 { return h.total }

// Max returns the longest duration, exactly.
func (h *Histogram) Max() time.Duration { return h.max }

// Percentile returns the duration that p percent of all do not exceed, by the nearest rank, and 0
// if there are none.
func (h *Histogram) Percentile(p float64) time.Duration {
	rank := max(int64(math.Ceil(p/100*float64(h.total))), 1)
	var seen int64
	for b, n := range h.counts {
		if seen += n; seen >= rank {
			return min(limit(b), h.max)
		}
	}
	return 0
}

// encoded is a Histogram in JSON: pairs of a bucket and its count.
type encoded struct {
	Counts [][2]int64
	Max    time.Duration
}

// MarshalJSON implements json.Marshaler.
func (h *Histogram) MarshalJSON() ([]byte, error) {
	e := encoded{Max: h.max}
	for b, n := range h.counts {
		if n != 0 {
			e.Counts = append(e.Counts, [2]int64{int64(b), n})
		}
	}
	return json.Marshal(e)
}

// UnmarshalJSON implements json.Unmarshaler.
func (h *Histogram) UnmarshalJSON(data []byte) error {
	var e encoded
	if err := json.Unmarshal(data, &e); err != nil {
		return err
	}
	*h = Histogram{max: e.Max}
	for _, c := range e.Counts {
		if c[0] < 0 || c[0] >= buckets {
			return fmt.Errorf("histogram: bucket %d of %d", c[0], buckets)
		}
		h.counts[c[0]] += c[1]
		h.total += c[1]
	}
	return nil
}
