package stats

import (
	"math"
	"slices"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// same reports whether two numbers are equal to 12 digits, or both NaN.
func same(a, b float64) bool {
	return math.IsNaN(a) && math.IsNaN(b) || math.Abs(a-b) <= 1e-12*math.Abs(b)
}

func TestMedian(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		values []float64
		want   float64
	}{
		{"none", nil, math.NaN()},
		{"one", []float64{7}, 7},
		{"odd", []float64{9, 1, 5}, 5},
		{"even", []float64{4, 1, 3, 2}, 2.5},
		{"equal", []float64{2, 2, 2}, 2},
		{"an outlier", []float64{1, 1e9, 2}, 2},
	} {
		before := slices.Clone(c.values)
		if got := Median(c.values); !same(got, c.want) {
			t.Errorf("%s: Median(%v) = %v, want %v", c.name, c.values, got, c.want)
		}
		if !slices.Equal(c.values, before) {
			t.Errorf("%s: the values are now %v, were %v", c.name, c.values, before)
		}
	}
}

func TestJain(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		shares []int64
		want   float64
	}{
		{"nobody", nil, math.NaN()},
		{"nothing", []int64{0, 0}, math.NaN()},
		{"one worker", []int64{3}, 1},
		{"equal", []int64{5, 5, 5, 5}, 1},
		{"one of four has everything", []int64{0, 8, 0, 0}, 0.25},
		{"one and two", []int64{1, 2}, 0.9},
	} {
		if got := Jain(c.shares); !same(got, c.want) {
			t.Errorf("%s: Jain(%v) = %v, want %v", c.name, c.shares, got, c.want)
		}
	}
}
