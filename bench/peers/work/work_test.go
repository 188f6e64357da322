//go:build unix

package work

import (
	"fmt"
	"testing"

	"github.com/holdfast-go/holdfast/bench/peers/contender"
	"github.com/holdfast-go/holdfast/bench/peers/report"
	"github.com/holdfast-go/holdfast/internal/check"
)

func TestOverBare(t *testing.T) {
	t.Parallel()
	round := []report.Row{
		{Contender: "bare/x", Values: map[string]float64{"speed": 50}},
		{Contender: "lock/x", Values: map[string]float64{"speed": 40}},
		{Contender: "stuck/x", Values: map[string]float64{"speed": 0}},
		{Contender: "lock/y", Values: map[string]float64{"speed": 40}},
		{Contender: "bare/y", Values: map[string]float64{"speed": 20}},
		{Contender: "lock/z", Values: map[string]float64{"speed": 40}},
	}
	overBare(round, "speed")
	for i, want := range []float64{1, 0.8, 0, 2, 1, 0} { // 0: not known
		check.Equal(t, round[i].Contender, round[i].Values[ratio.Name], want)
	}
}

func TestTurns(t *testing.T) {
	t.Parallel()
	contenders := []contender.Contender{{Name: "a"}, {Name: "b"}}
	for _, c := range []struct {
		paired bool
		want   string
	}{
		{false, "a1 b1 a5 b5 "},
		{true, "a1 a5 b1 b5 "},
	} {
		got := ""
		for _, turn := range (Work{paired: c.paired}).turns(contenders, []int{1, 5}) {
			got += turn.contender.Name + string(rune('0'+turn.setting)) + " "
		}
		check.Equal(t, fmt.Sprintf("paired %t", c.paired), got, c.want)
	}
}
