//go:build unix

package load

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/bench/peers/contender"
	"github.com/holdfast-go/holdfast/bench/peers/stats"
)

const (
	samples   = 20              // of the number of goroutines, in the measured time
	maxErrors = 100             // after which a goroutine gives up
	warmUp    = 2 * time.Second // the first cycle may hang too, and is left alone after it
	closing   = time.Second     // for stuck goroutines to return once the contender is closed
)

// Run does the Job in this process: it opens the contender, runs the goroutines, and closes it.
func Run(job Job, hooks Hooks) (*Tally, error) {
	c, ok := contender.Named(job.Contender)
	if !ok {
		return nil, fmt.Errorf("no contender is named %q", job.Contender)
	}
	sections, err := OpenSections(job.Sections)
	if err != nil {
		return nil, err
	}
	idle := runtime.NumGoroutine()
	locks, err := c.Open(job.Options)
	if err != nil {
		return nil, errors.Join(err, sections.Close())
	}
	r := &run{job: job, locks: locks, sections: sections, workers: make([]worker, job.Goroutines), idle: idle}
	tally, err := r.all(hooks)
	call(hooks.Closing)
	locks.Close()
	if Wait(&r.running, closing) && Wait(&r.warming, closing) { // else a stuck goroutine may still enter a section
		err = errors.Join(err, sections.Close())
	}
	return tally, err
}

// run is a Job on its way.
type run struct {
	job      Job
	locks    *contender.Locks
	sections *Sections
	workers  []worker
	idle     int // goroutines before the contender was opened

	start, begin, end time.Time // begin and end are of the measured time
	warming, running  sync.WaitGroup
}

// worker is the result of one goroutine.
type worker struct {
	mu     sync.Mutex
	done   bool
	cycles int64
	times  stats.Histogram
	last   time.Time
	errors int64
	err    error
}

func (r *run) all(hooks Hooks) (*Tally, error) {
	if err := r.firstCycle(); err != nil {
		return nil, fmt.Errorf("%s: first cycle: %w", r.job.Contender, err)
	}
	start, err := hooks.ready()
	if err != nil {
		return nil, err
	}
	r.start, r.begin, r.end = start, start.Add(r.job.RunIn), start.Add(r.job.RunIn+r.job.For)
	until(start)
	for i := range r.workers {
		r.running.Go(func() { r.work(i) })
	}
	until(r.begin)
	call(hooks.Begin)
	before := ReadUsage()
	goroutines := r.observe()
	after := ReadUsage()
	call(hooks.End)
	Wait(&r.running, r.job.Grace)
	tally := r.tally()
	tally.Mallocs, tally.Bytes = after.Mallocs-before.Mallocs, after.Bytes-before.Bytes
	tally.CPU, tally.Goroutines = after.CPU-before.CPU, goroutines
	return tally, nil
}

// firstCycle runs one cycle on a name of this process's own: it returns a broken contender's error.
func (r *run) firstCycle() error {
	result := make(chan error, 1)
	r.warming.Go(func() {
		lock, err := r.locks.Acquire("warm-up:" + strconv.Itoa(r.job.Process))
		if err == nil {
			err = lock.Release(context.Background())
		}
		result <- err
	})
	select {
	case err := <-result:
		return err
	case <-time.After(warmUp):
		return nil
	}
}

// observe waits for the end of the measured time, and returns how many goroutines the contender had
// at most.
func (r *run) observe() (most int) {
	for i := range samples {
		until(r.begin.Add(r.job.For * time.Duration(i+1) / samples))
		if i < samples-1 { // at the end the workers return
			most = max(most, runtime.NumGoroutine()-r.idle-len(r.workers))
		}
	}
	return most
}

// Wait waits until the goroutines of a group have returned, and reports whether they have.
func Wait(group *sync.WaitGroup, limit time.Duration) bool {
	done := make(chan struct{})
	go func() { group.Wait(); close(done) }()
	select {
	case <-done:
		return true
	case <-time.After(limit):
		return false
	}
}

func (r *run) work(i int) {
	w := &r.workers[i]
	number := r.job.Process*r.job.Goroutines + i
	section := number % r.job.Names
	name := "peers:" + strconv.Itoa(section)
	for now := time.Now(); now.Before(r.end); {
		var ok bool
		if now, ok = r.cycle(w, name, section, number+1, now); !ok {
			break
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.done = true
}

// cycle runs one cycle from start, and returns the time of its end, and whether the worker is to go
// on.
func (r *run) cycle(w *worker, name string, section, number int, start time.Time) (time.Time, bool) {
	lock, err := r.locks.Acquire(name)
	acquired := time.Now()
	if err != nil {
		return acquired, w.fail(fmt.Errorf("acquire: %w", err))
	}
	r.sections.Enter(section, number)
	if r.job.Hold > 0 {
		<-time.After(r.job.Hold)
	}
	r.sections.Leave(section)
	err = lock.Release(context.Background())
	end := time.Now()
	if err != nil {
		return end, w.fail(fmt.Errorf("release: %w", err))
	}
	took := acquired.Sub(start)
	if r.job.WholeCycle {
		took = end.Sub(start)
	}
	w.add(end, took, !end.Before(r.begin) && end.Before(r.end), !start.Before(r.begin))
	if r.job.Away > 0 {
		<-time.After(r.job.Away)
		end = time.Now()
	}
	return end, true
}

// add counts a cycle, and its time, if they belong to the measured time.
func (w *worker) add(end time.Time, took time.Duration, ended, began bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last = end
	if ended {
		w.cycles++
	}
	if began {
		w.times.Add(took)
	}
}

// fail counts an error, and reports whether the worker is to go on.
func (w *worker) fail(err error) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.errors++; w.err == nil {
		w.err = err
	}
	return w.errors < maxErrors
}

// tally adds up the workers. A stuck one's time is its wait until now.
func (r *run) tally() *Tally {
	t := &Tally{Times: &stats.Histogram{}}
	for i := range r.workers {
		w := &r.workers[i]
		w.mu.Lock()
		t.Cycles = append(t.Cycles, w.cycles)
		t.Times.Merge(&w.times)
		t.Last = max(t.Last, w.last.Sub(r.start))
		if !w.done {
			t.Stuck++
			t.Times.Add(time.Since(w.waitingSince(r.start)))
		}
		t.Errors += w.errors
		if w.err != nil && t.Error == "" {
			t.Error = w.err.Error()
		}
		w.mu.Unlock()
	}
	return t
}

// waitingSince returns when the cycle of a stuck worker began, or the start if it is its first.
func (w *worker) waitingSince(start time.Time) time.Time {
	if w.last.IsZero() {
		return start
	}
	return w.last
}
