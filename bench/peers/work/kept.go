//go:build unix

package work

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/bench/peers/contender"
	"github.com/holdfast-go/holdfast/bench/peers/load"
	"github.com/holdfast-go/holdfast/bench/peers/report"
)

// keptTTL is the lease of locks to be kept alive, and for how long they are watched. Quick ones are
// watched until Holdfast has renewed them.
const (
	keptTTL    = 10 * time.Second
	quickTTL   = 3 * time.Second
	quickWatch = 1200 * time.Millisecond
)

// hands is the number of goroutines that acquire and release the kept locks.
const hands = 16

var errHangs = errors.New("hangs")

var (
	keptBytes      = report.Metric{Name: "bytes_per_lock", Heading: "bytes per lock", Format: report.Whole}
	keptCPU        = report.Metric{Name: "cpu_percent", Heading: "CPU of one core, %", Format: report.Short}
	keptGoroutines = report.Metric{Name: "goroutines", Heading: "goroutines", Format: report.Whole}
	keptCommands   = report.Metric{Name: "commands_per_lock", Heading: "commands per lock", Format: report.Short}
	lost           = report.Metric{Name: "lost", Heading: "lost", Format: report.Whole, Combine: report.Sum, IsStrict: true}
)

var kept = Work{
	Name: "kept", Title: "Locks kept alive, TTL 10 s", Rounds: 1,
	Setting: "locks",
	Metrics: []report.Metric{keptBytes, keptCPU, keptGoroutines, keptCommands, lost},
	Plots: []report.Plot{
		{File: "kept-bytes", Title: "Memory of a lock that is kept alive", X: "locks", Y: "bytes per lock", Metric: keptBytes.Name},
		{File: "kept-cpu", Title: "CPU for locks that are kept alive, TTL 10 s", X: "locks", Y: "% of one core", Metric: keptCPU.Name},
	},
	role: contender.Keeps,
	settings: func(s Size) []int {
		switch s {
		case Quick:
			return []int{100}
		case Long:
			return []int{100, 1000, 10_000, 100_000}
		}
		return []int{100, 1000, 10_000}
	},
	measure: func(ctx context.Context, e *env, c contender.Contender, n int) (report.Row, error) {
		limit := pick(e, 10*time.Second, time.Minute)
		row, err := keep(ctx, e, c, n, limit)
		if errors.Is(err, errHangs) {
			row, err = report.Row{Hang: fmt.Sprintf("hangs: not all were acquired or released in %s", limit)}, nil
		}
		return row, err
	},
}

// keep holds n locks for a while, and then releases them. limit bounds both.
func keep(ctx context.Context, e *env, c contender.Contender, n int, limit time.Duration) (row report.Row, err error) {
	opts := e.options(1)
	opts.TTL = pick(e, quickTTL, keptTTL)
	watch := pick(e, quickWatch, keptTTL)
	locks, err := c.Open(opts)
	if err != nil {
		return row, err
	}
	defer locks.Close()
	held := make([]contender.Lock, n)
	acquire := func(i int) (err error) {
		held[i], err = locks.Acquire("kept:" + strconv.Itoa(i))
		return err
	}
	release := func(i int) error { return held[i].Release(context.Background()) }

	connections := min(n, hands)
	for _, f := range []func(int) error{acquire, release} {
		if err := each(connections, limit, f); err != nil {
			return row, err
		}
	}
	clear(held)
	memory, goroutines := load.Memory(), runtime.NumGoroutine()
	if err := each(n, limit, acquire); err != nil {
		return row, err
	}
	v := map[string]float64{
		keptBytes.Name:      float64(load.Memory()-memory) / float64(n),
		keptGoroutines.Name: float64(runtime.NumGoroutine() - goroutines),
	}
	before, err := read(e.servers[:1])
	if err != nil {
		return row, err
	}
	used := load.CPU()
	select {
	case <-ctx.Done():
		return row, ctx.Err()
	case <-time.After(watch):
	}
	v[keptCPU.Name] = 100 * float64(load.CPU()-used) / float64(watch)
	after, err := read(e.servers[:1])
	if err != nil {
		return row, err
	}
	v[keptCommands.Name] = float64(after.commands-before.commands) / float64(n)
	var gone atomic.Int64
	err = each(n, limit, func(i int) error {
		if release(i) != nil {
			gone.Add(1)
		}
		return nil
	})
	v[lost.Name] = float64(gone.Load())
	return report.Row{Values: v}, err
}

// each calls f for 0 to n-1, by several goroutines. After limit it returns errHangs.
func each(n int, limit time.Duration, f func(i int) error) error {
	errs := make([]error, hands)
	var wg sync.WaitGroup
	for h := range hands {
		wg.Go(func() {
			for i := h; i < n; i += hands {
				if err := f(i); err != nil {
					errs[h] = fmt.Errorf("lock %d: %w", i, err)
					return
				}
			}
		})
	}
	if !load.Wait(&wg, limit) {
		return errHangs
	}
	return errors.Join(errs...)
}
