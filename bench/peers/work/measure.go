//go:build unix

package work

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/bench/peers/load"
	"github.com/holdfast-go/holdfast/bench/peers/report"
	"github.com/holdfast-go/holdfast/bench/peers/stats"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// The metrics. Times are in microseconds.
var (
	rate        = report.Metric{Name: "cycles_per_s", Heading: "cycles/s", Format: report.Whole}
	cycleTime   = report.Metric{Name: "cycle_us", Heading: "cycle", Format: report.Micros}
	p50         = report.Metric{Name: "p50_us", Heading: "p50", Format: report.Micros}
	p99         = report.Metric{Name: "p99_us", Heading: "p99", Format: report.Micros}
	longest     = report.Metric{Name: "max_us", Heading: "max", Format: report.Micros, Combine: report.Max}
	fairness    = report.Metric{Name: "jain", Heading: "fairness", Format: report.Short}
	allocs      = report.Metric{Name: "allocs_per_cycle", Heading: "allocs", Format: report.Short}
	allocBytes  = report.Metric{Name: "alloc_bytes_per_cycle", Format: report.Whole}
	cpu         = report.Metric{Name: "cpu_us_per_cycle", Heading: "CPU", Format: report.Micros}
	commands    = report.Metric{Name: "commands_per_cycle", Heading: "commands", Format: report.Short}
	serverReads = report.Metric{Name: "reads_per_cycle", Heading: "reads", Format: report.Short}
	goroutines  = report.Metric{Name: "goroutines", Heading: "goroutines", Format: report.Whole, Combine: report.Max}
	stuck       = report.Metric{Name: "stuck", Format: report.Whole, Combine: report.Max}
	failures    = report.Metric{Name: "errors", Heading: "errors", Format: report.Whole, Combine: report.Sum, IsStrict: true}
	violations  = report.Metric{Name: "violations", Heading: "violations", Format: report.Whole, Combine: report.Sum, IsStrict: true}
)

// metrics puts the common metrics of Jobs around some of a work.
func metrics(more ...report.Metric) []report.Metric {
	all := append([]report.Metric{rate}, more...)
	return append(all, p50, p99, longest, fairness, allocs, allocBytes, cpu, commands, serverReads, goroutines, stuck, failures, violations)
}

// counted are the servers and sections of a job while it runs.
type counted struct {
	servers       []*redistest.Server
	sections      *load.Sections
	before, after counters
	handOvers     int64
	err           error
}

// hooks count between Begin and End.
func (c *counted) hooks() load.Hooks {
	return load.Hooks{
		Begin: func() {
			var err error
			c.before, err = read(c.servers)
			c.err = errors.Join(c.err, err)
			c.handOvers = -c.sections.HandOvers()
		},
		End: func() {
			var err error
			c.handOvers += c.sections.HandOvers()
			c.after, err = read(c.servers)
			c.err = errors.Join(c.err, err)
		},
	}
}

// run does the job, in this process if processes is 0, and returns its figures.
func (e *env) run(ctx context.Context, job load.Job, processes int) (report.Row, error) {
	return e.runWith(ctx, job, processes, func(*load.Hooks) {})
}

// runWith is run with more hooks.
func (e *env) runWith(ctx context.Context, job load.Job, processes int, more func(*load.Hooks)) (_ report.Row, err error) {
	sections, err := e.sections(&job)
	if err != nil {
		return report.Row{}, err
	}
	defer func() { err = errors.Join(err, sections.Close()) }()
	count := &counted{servers: e.counted(job), sections: sections}
	hooks := count.hooks()
	more(&hooks)
	var tally *load.Tally
	if processes == 0 {
		tally, err = load.Run(job, hooks)
	} else {
		tally, err = load.RunProcesses(ctx, job, processes, hooks)
	}
	if err = errors.Join(err, count.err); err != nil {
		return report.Row{}, err
	}
	row := rowOf(job, tally, count)
	if tally.Stuck > 0 {
		row.Hang, err = e.describe(tally, job)
	}
	return row, err
}

// counted are the servers of a job. A frozen one would not answer: it is the last.
func (e *env) counted(job load.Job) []*redistest.Server {
	if len(job.Options.Addrs) == 1 {
		return e.servers[:1]
	}
	return e.servers[:nodes-1]
}

func rowOf(job load.Job, t *load.Tally, c *counted) report.Row {
	seconds, cycles := job.For.Seconds(), float64(t.Total())
	v := map[string]float64{
		rate.Name:       cycles / seconds,
		fairness.Name:   stats.Jain(t.Cycles),
		goroutines.Name: float64(t.Goroutines),
		stuck.Name:      float64(t.Stuck),
		failures.Name:   float64(t.Errors),
		violations.Name: float64(c.sections.Violations()),
	}
	if t.Times.Total() > 0 {
		v[p50.Name], v[p99.Name] = micros(t.Times.Percentile(50)), micros(t.Times.Percentile(99))
		v[longest.Name] = micros(t.Times.Max())
	}
	if cycles > 0 {
		v[cycleTime.Name] = micros(job.For) * float64(len(t.Cycles)) / cycles
		v[allocs.Name] = float64(t.Mallocs) / cycles
		v[allocBytes.Name] = float64(t.Bytes) / cycles
		v[cpu.Name] = micros(t.CPU) / cycles
		v[commands.Name] = float64(c.after.commands-c.before.commands) / cycles
		v[serverReads.Name] = float64(c.after.reads-c.before.reads) / cycles
	}
	if c.handOvers > 0 {
		n := float64(c.handOvers)
		v[handOverRate.Name] = n / seconds
		v[handOverCommands.Name] = float64(c.after.commands-c.before.commands) / n
		v[handOverReads.Name] = float64(c.after.reads-c.before.reads) / n
	}
	return report.Row{Values: v}
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// describe describes a hanging job: its last cycle, and whether the lock is held.
func (e *env) describe(t *load.Tally, job load.Job) (string, error) {
	reply, err := e.servers[0].Command("DBSIZE")
	if err != nil {
		return "", err
	}
	state := "the lock held"
	if reply == int64(0) {
		state = "the lock free"
	}
	after := "at once"
	if t.Last > 0 {
		after = "after " + report.Micros(micros(t.Last))
	}
	return fmt.Sprintf("hangs %s: %d of %d waited %s more, %s", after, t.Stuck, len(t.Cycles), job.Grace, state), nil
}
