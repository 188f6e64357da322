package simulate_test

import (
	"fmt"
	"testing"

	"github.com/holdfast-go/holdfast/internal/effort"
	"github.com/holdfast-go/holdfast/reliability/simulate"
	"github.com/holdfast-go/holdfast/reliability/workload"
)

// Every strategy, alone and in a quorum, is held, refused, renewed and disturbed, and its answers
// are checked. Otherwise a run without violations would prove nothing.
func TestAllAreContended(t *testing.T) {
	t.Parallel()
	effort.NeedFull(t)
	type tried struct{ holds, refusals, checked, faults int }
	sums := map[string]tried{}
	proves := func(sum tried) bool {
		return sum.holds > 0 && sum.refusals > 0 && sum.checked > sum.holds && sum.faults > 0
	}
	open := 2*len(workload.Strategies) - 1 // a semaphore is no node of a quorum
	for seed := uint64(1); seed < 100 && open > 0; seed++ {
		p := simulate.NewPlan(seed)
		kind := fmt.Sprintf("%s, quorum %v", p.Strategy, p.Quorum)
		sum := sums[kind]
		if proves(sum) {
			continue
		}
		o := simulate.Run(t, p, nil)
		sum.faults += o.Faults
		for _, res := range o.Names {
			sum.holds += res.Holds
			sum.refusals += res.Refusals
			sum.checked += res.Checked
		}
		if sums[kind] = sum; proves(sum) {
			open--
			t.Logf("by seed %d: %s: %+v", seed, kind, sum)
		}
	}
	if open > 0 {
		t.Errorf("of %d kinds of locks it is not known whether they are contended: %+v", open, sums)
	}
}
