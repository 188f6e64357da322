package main

import (
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/reliability/history"
)

// A run that proves nothing fails.
func TestProof(t *testing.T) {
	t.Parallel()
	good := history.Result{Verdict: history.Kept, Holds: 3, Refusals: 2}
	for _, c := range []struct {
		name   string
		rounds int
		res    []history.Result
		want   string
	}{
		{"nothing was judged", 0, nil, "no round was judged"},
		{"held and refused", 1, []history.Result{good, {Verdict: history.Kept}}, ""},
		{"hardly tried", 1, []history.Result{{Verdict: history.Kept}}, ""},
		{"never held", 1, slices.Repeat([]history.Result{{Verdict: history.Kept, Refusals: 2}}, enough), "single: 0 holds"},
		{"never refused", 1, slices.Repeat([]history.Result{{Verdict: history.Kept, Holds: 3}}, enough), "0 refusals"},
		{"never handed over", 1, slices.Repeat([]history.Result{good}, enough), "no lock was handed over"},
		{"handed over once", 1, append(slices.Repeat([]history.Result{good}, enough), history.Result{HandOvers: 1}), ""},
		{"out of time", 1, []history.Result{good, {Verdict: history.Unknown}}, "1 histories ran out of time"},
	} {
		j := newChecker(io.Discard, t.TempDir())
		j.rounds = c.rounds
		for _, res := range c.res {
			g := group{Strategy: handsOver}
			if strings.Contains(c.name, "handed over") {
				g.Cohort = &cohort{}
			}
			j.add(&round{deployment: &deployment{}}, g, res)
		}
		err := j.inconclusive()
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}
