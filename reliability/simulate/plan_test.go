package simulate_test

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/reliability/simulate"
	"github.com/holdfast-go/holdfast/reliability/workload"
)

func ExampleNewPlan() {
	p := simulate.NewPlan(5)
	fmt.Println(p)
	fmt.Println(p.Faults[0])
	// Output:
	// rwhash, retry, clients rueidis goredis goredis, 7 workers, 2 names, TTLs [200ms]
	// 27.378534ms replies dropped, client 2, server 0, for 0s, 2 replies
}

func TestASeedGivesOnePlan(t *testing.T) {
	t.Parallel()
	for seed := range uint64(50) {
		if a, b := simulate.NewPlan(seed), simulate.NewPlan(seed); !reflect.DeepEqual(a, b) {
			t.Errorf("seed %d gives %v and %v", seed, a, b)
		}
	}
	if a, b := simulate.NewPlan(1), simulate.NewPlan(2); reflect.DeepEqual(a.Workers, b.Workers) {
		t.Error("two seeds give the same plan")
	}
}

// A few hundred seeds produce every possible part of a plan.
func TestPlansHaveEverything(t *testing.T) {
	t.Parallel()
	missing := map[string]bool{}
	for _, want := range []any{
		"single", "reentrant", "rwhash", "semaphore", "goredis", "rueidis", "redigo", "quorum", "watchdog", "retry", "hand-over", "fenced", "calm",
		workload.Look, workload.Write, workload.Renew, workload.Downgrade, workload.Upgrade, workload.Nest, workload.Pass, workload.Resume, "turns that resume",
		workload.Release, workload.Hasty, workload.Overstay, workload.Abandon,
		simulate.DropReplies, simulate.Garble, simulate.Cut, simulate.HalfOpen, simulate.Freeze, simulate.Delay, simulate.Overtake,
		simulate.Pause, simulate.Stall, simulate.Crash, simulate.Refuse, simulate.Forget, simulate.StepClock, simulate.Leap,
		simulate.Wipe, simulate.Exile, simulate.Clog, "contained", "logs", "impatient",
	} {
		missing[fmt.Sprint(want)] = true
	}
	for seed := range uint64(400) {
		p := simulate.NewPlan(seed)
		for what, has := range map[string]bool{
			p.Strategy: true, "quorum": p.Quorum, "watchdog": p.Watchdog, "retry": p.Retry, "hand-over": p.HandOver > 0, "fenced": p.Names[0].Fenced, "calm": len(p.Faults) == 0,
			"contained": p.Contained,
		} {
			if has {
				delete(missing, what)
			}
		}
		for _, provider := range p.Clients {
			delete(missing, provider)
		}
		for _, f := range p.Faults {
			delete(missing, string(f.Kind))
		}
		for _, w := range p.Workers {
			if w.Logs {
				delete(missing, "logs")
			}
			if w.Impatient {
				delete(missing, "impatient")
			}
			for _, turn := range w.Turns {
				delete(missing, string(turn.End))
				if turn.Resume {
					delete(missing, "turns that resume")
				}
				for _, s := range turn.Steps {
					delete(missing, string(s.Do))
				}
			}
		}
	}
	for what := range missing {
		t.Errorf("no plan has %q", what)
	}
}

// A plan keeps the assumptions about servers, unless it allows for a loss.
func TestPlansKeepToTheAssumptions(t *testing.T) {
	t.Parallel()
	for seed := range uint64(400) {
		p := simulate.NewPlan(seed)
		drift := slices.Min(p.TTLs)/100 + 2*time.Millisecond
		last := make([]time.Duration, len(p.Offsets))
		var until time.Duration // until when a server is in exile
		for _, f := range p.Faults {
			switch f.Kind {
			case simulate.StepClock:
				check.AtMost(t, fmt.Sprintf("seed %d: a step of the clock", seed), f.By.Abs(), drift)
				if last[f.Server] != 0 && f.At < last[f.Server]+slices.Max(p.TTLs) {
					t.Errorf("seed %d: two steps in a lease, at %v and %v", seed, last[f.Server], f.At)
				}
				last[f.Server] = f.At
			case simulate.Exile:
				if f.At < until || f.For < slices.Max(p.TTLs) {
					t.Errorf("seed %d: %v, while another was away until %v", seed, f, until)
				}
				until = f.At + f.For
			case simulate.Leap, simulate.Wipe:
				if p.Quorum && f.Kind == simulate.Wipe && p.Offsets[0] != 0 {
					t.Errorf("seed %d: servers lose counters, and have different clocks", seed)
				}
			}
		}
	}
}
