//go:build unix

package work

import (
	"context"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/bench/peers/contender"
	"github.com/holdfast-go/holdfast/bench/peers/load"
	"github.com/holdfast-go/holdfast/bench/peers/report"
)

// crowd is how many goroutines the works with many have.
const crowd = 64

var ratio = report.Metric{Name: "ratio", Heading: "over bare", Format: report.Short}

var free = Work{
	Name: "free", Title: "One goroutine, one free lock", Rounds: 9,
	Metrics: []report.Metric{cycleTime, ratio, p50, p99, longest, allocs, allocBytes, cpu, commands, serverReads, goroutines, stuck, failures, violations},
	role:    contender.Free,
	measure: func(ctx context.Context, e *env, c contender.Contender, _ int) (report.Row, error) {
		job := e.job(c, 1, 1, 300*time.Millisecond)
		job.WholeCycle = true
		return e.run(ctx, job, 0)
	},
	relate: func(round []report.Row) { overBare(round, cycleTime.Name) },
}

var names = Work{
	Name: "names", Title: "64 goroutines, 64 free locks", Rounds: 7,
	Metrics: metrics(ratio),
	role:    contender.Free,
	measure: func(ctx context.Context, e *env, c contender.Contender, _ int) (report.Row, error) {
		job := e.job(c, crowd, crowd, 500*time.Millisecond)
		job.WholeCycle = true
		return e.run(ctx, job, 0)
	},
	relate: func(round []report.Row) { overBare(round, rate.Name) },
}

// overBare sets the ratio of a metric to that of the same client without a library.
func overBare(round []report.Row, metric string) {
	bare := map[string]float64{}
	for _, r := range round {
		if library, client, _ := strings.Cut(r.Contender, "/"); library == "bare" {
			bare[client] = r.Values[metric]
		}
	}
	for _, r := range round {
		_, client, _ := strings.Cut(r.Contender, "/")
		if base, v := bare[client], r.Values[metric]; base > 0 && v > 0 {
			r.Values[ratio.Name] = v / base
		}
	}
}

var contended = Work{
	Name: "contended", Title: "64 goroutines of one process, one lock", Rounds: 3,
	Metrics: metrics(),
	role:    contender.Waits,
	measure: func(ctx context.Context, e *env, c contender.Contender, _ int) (report.Row, error) {
		return e.run(ctx, e.job(c, crowd, 1, 2*time.Second), 0)
	},
}

var processes = Work{
	Name: "processes", Title: "8 processes of 8 goroutines, one lock", Rounds: 3,
	Metrics: metrics(),
	role:    contender.Waits,
	measure: func(ctx context.Context, e *env, c contender.Contender, _ int) (report.Row, error) {
		return e.run(ctx, e.job(c, pick(e, 2, 8), 1, 2*time.Second), pick(e, 2, 8))
	},
}

// The metrics of a hand-over: an acquire by another process than the one before.
var (
	handOverRate     = report.Metric{Name: "hand_overs_per_s", Heading: "hand-overs/s", Format: report.Whole}
	handOverCommands = report.Metric{Name: "commands_per_hand_over", Heading: "commands per hand-over", Format: report.Short}
	handOverReads    = report.Metric{Name: "reads_per_hand_over", Heading: "reads per hand-over", Format: report.Short}
)

var handOver = Work{
	Name: "hand-over", Title: "Redis commands per hand-over between processes", Rounds: 1,
	Setting: "waiting processes",
	Metrics: metrics(handOverRate, handOverCommands, handOverReads),
	Pivots:  []string{handOverCommands.Name, handOverReads.Name, handOverRate.Name},
	Plots: []report.Plot{{
		File: "hand-over", Title: "Redis commands per hand-over", Metric: handOverCommands.Name,
		X: "waiting processes", Y: "commands per hand-over",
	}},
	role: contender.Waits,
	settings: func(s Size) []int {
		if s == Quick {
			return []int{1}
		}
		return []int{1, 8, 64}
	},
	measure: func(ctx context.Context, e *env, c contender.Contender, waiting int) (report.Row, error) {
		job := e.job(c, 1, 1, 2*time.Second)
		job.For = max(job.For, 300*time.Millisecond)                // for some hand-overs in quick runs
		job.Hold, job.Away = 5*time.Millisecond, 2*time.Millisecond // others get the lock meanwhile
		return e.run(ctx, job, waiting+1)
	},
}

var overOne = report.Metric{Name: "over_one_node", Heading: "over one node", Format: report.Short}

var redlock = Work{
	Name: "redlock", Title: "A quorum of five nodes over one node", Rounds: 7,
	Setting: "nodes",
	Metrics: []report.Metric{cycleTime, overOne, p50, p99, longest, allocs, cpu, goroutines, stuck, failures, violations},
	role:    contender.Quorum,
	settings: func(Size) []int {
		return []int{1, nodes}
	},
	paired: true,
	measure: func(ctx context.Context, e *env, c contender.Contender, n int) (report.Row, error) {
		job := e.job(c, 1, 1, 400*time.Millisecond)
		job.WholeCycle, job.Options = true, e.options(n)
		return e.run(ctx, job, 0)
	},
	relate: func(round []report.Row) {
		one := map[string]float64{}
		for _, r := range round {
			if r.Setting == 1 {
				one[r.Contender] = r.Values[cycleTime.Name]
			}
		}
		for _, r := range round {
			if base, v := one[r.Contender], r.Values[cycleTime.Name]; r.Setting != 1 && base > 0 && v > 0 {
				r.Values[overOne.Name] = v / base
			}
		}
	},
}

var frozen = Work{
	Name: "frozen", Title: "A quorum with one of five nodes frozen", Rounds: 1,
	Metrics: []report.Metric{rate, p50, p99, longest, allocs, cpu, goroutines, stuck, failures, violations},
	role:    contender.Quorum,
	measure: func(ctx context.Context, e *env, c contender.Contender, _ int) (report.Row, error) {
		job := e.job(c, 1, 1, 2*time.Second)
		job.WholeCycle, job.Options, job.RunIn = true, e.options(nodes), 0
		job.Grace = pick(e, 100*time.Millisecond, 20*time.Second)
		node := e.servers[nodes-1]
		thaw := func() { _ = node.Thaw() } // fails only if the server is gone: the next command finds that
		defer thaw()
		return e.runWith(ctx, job, 0, func(h *load.Hooks) {
			h.Ready = func() (time.Time, error) { err := node.Freeze(); return time.Now(), err }
			h.Closing = thaw
		})
	},
}

// sweep is throughput and waits against the number of waiters, of so many processes.
func sweep(name, title string, most int) Work {
	return Work{
		Name: name, Title: title, Rounds: 1,
		Setting: "waiters",
		Metrics: metrics(),
		Pivots:  []string{rate.Name, p99.Name, longest.Name},
		Plots: []report.Plot{
			{File: name + "-throughput", Title: title, X: "waiters", Y: "cycles per second", Metric: rate.Name},
			{File: name + "-p99", Title: title, X: "waiters", Y: "p99 of the wait (ms)", Metric: p99.Name, Scale: 1e-3},
		},
		role: contender.Waits,
		settings: func(s Size) []int {
			if s == Quick {
				return []int{4}
			}
			return []int{1, 2, 8, 32, 128, 512}
		},
		measure: func(ctx context.Context, e *env, c contender.Contender, n int) (report.Row, error) {
			processes := min(n, most)
			job := e.job(c, n/processes, 1, time.Second)
			if most == 1 {
				processes = 0
			}
			return e.run(ctx, job, processes)
		},
	}
}

var (
	waiters    = sweep("waiters", "One process: throughput and waits against waiters", 1)
	waitersOf8 = sweep("waiters-8", "Eight processes: throughput and waits against waiters", 8)
)
