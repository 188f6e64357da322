package stats

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
)

func of(durations ...time.Duration) *Histogram {
	h := &Histogram{}
	for _, d := range durations {
		h.Add(d)
	}
	return h
}

// upTo returns 1, 2, ... n units.
func upTo(n int, unit time.Duration) (all []time.Duration) {
	for i := range n {
		all = append(all, time.Duration(i+1)*unit)
	}
	return all
}

func TestPercentile(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		h    *Histogram
		p    float64
		want time.Duration // the exact one
	}{
		{"none", of(), 50, 0},
		{"one", of(time.Second), 50, time.Second},
		{"the least of one", of(time.Second), 0, time.Second},
		{"median of few", of(1, 2, 3), 50, 2},
		{"median of two is the lower", of(1, 3), 50, 1},
		{"p99 of hundred", of(upTo(100, time.Millisecond)...), 99, 99 * time.Millisecond},
		{"p50 of thousand", of(upTo(1000, time.Microsecond)...), 50, 500 * time.Microsecond},
		{"p99 of thousand", of(upTo(1000, time.Microsecond)...), 99, 990 * time.Microsecond},
		{"all", of(upTo(1000, time.Microsecond)...), 100, time.Millisecond},
		{"negative", of(-1, -2), 100, 0},
		{"an hour", of(time.Hour, time.Hour, time.Hour), 50, time.Hour},
	} {
		got := c.h.Percentile(c.p)
		if got < c.want || float64(got) > float64(c.want)*(1+1.0/steps) {
			t.Errorf("%s: p%v is %v, want %v or up to 1/%d more", c.name, c.p, got, c.want, steps)
		}
	}
}

// Every duration is in the first bucket that ends at it or after it.
func TestBuckets(t *testing.T) {
	t.Parallel()
	for exponent := range 63 {
		for _, d := range []time.Duration{1<<exponent - 1, 1 << exponent, 1<<exponent + 1, 3 << exponent >> 1} {
			b := bucket(d)
			if d > limit(b) || b > 0 && d <= limit(b-1) {
				t.Errorf("%d is in bucket %d, which ends at %d", d, b, limit(b))
			}
		}
	}
}

func TestMerge(t *testing.T) {
	t.Parallel()
	a, b := of(upTo(10, time.Millisecond)...), of(upTo(500, time.Microsecond)...)
	a.Add(time.Minute)
	want := of(append(append(upTo(10, time.Millisecond), upTo(500, time.Microsecond)...), time.Minute)...)
	a.Merge(b)
	if *a != *want {
		t.Errorf("merged: %d of at most %v, want %d of at most %v", a.Total(), a.Max(), want.Total(), want.Max())
	}
}

func TestJSON(t *testing.T) {
	t.Parallel()
	want := of(upTo(300, 777*time.Nanosecond)...)
	data := locker.Must(json.Marshal(want))
	var got Histogram
	check.Must(t, json.Unmarshal(data, &got))
	if got != *want {
		t.Errorf("%s came back as %d of at most %v", data, got.Total(), got.Max())
	}
	for _, bad := range []string{`{"Counts":[[-1,1]]}`, `{"Counts":[[99999,1]]}`, `[]`} {
		check.Equal(t, fmt.Sprintf("%s is decoded", bad), json.Unmarshal([]byte(bad), &got) == nil, false)
	}
}
