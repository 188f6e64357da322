// Package stats has the statistics of the reports.
package stats

import (
	"math"
	"slices"
)

// Median returns the middle of values, the mean of the middle two if their number is even, and NaN
// if there are none. The order of values does not matter and is kept.
func Median(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

// Jain returns Jain's fairness index of shares: 1 if all are equal, 1/n if one of n has everything,
// and NaN if there is nothing to share.
func Jain(shares []int64) float64 {
	var sum, squares float64
	for _, s := range shares {
		sum += float64(s)
		squares += float64(s) * float64(s)
	}
	if squares == 0 {
		return math.NaN()
	}
	return sum * sum / (float64(len(shares)) * squares)
}
