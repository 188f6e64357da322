package simulate

import (
	"slices"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
)

// Pauses are drawn from the seed: equal for each run of the same acquire of a client, and different
// for others.
func TestPauses(t *testing.T) {
	t.Parallel()
	draw := func(seed uint64, client int) (all []time.Duration) {
		policy := pausesOf(seed, client)
		for range 2 {
			b, about := policy(), firstPause
			for range 10 {
				d := b.NextBackOff()
				check.Within(t, "pause", d, about/2, about+about/2)
				all = append(all, d)
				about = min(2*about, longestPause)
			}
		}
		return all
	}
	one := draw(1, 0)
	check.EqualSlices(t, "pauses of a seed", one, draw(1, 0))
	if slices.Equal(one, draw(2, 0)) || slices.Equal(one, draw(1, 1)) || slices.Equal(one[:10], one[10:]) {
		t.Error("pauses that should differ are the same")
	}
}
