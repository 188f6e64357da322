package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/reliability/history"
)

// checkLimit bounds the check of one name's history.
const checkLimit = 30 * time.Second

// checker checks the histories of rounds while later rounds run, and counts results.
type checker struct {
	out     io.Writer // for progress and violations
	dir     string    // for histories
	pending sync.WaitGroup
	slots   chan struct{}

	mu         sync.Mutex
	faults     map[string]int
	operations int
	checked    int // of them
	histories  int
	holds      int
	tried      map[string]*tried // by strategy
	resumes    int               // successful ones
	cohorts    int               // histories with hand-overs allowed
	handOvers  int
	violations int
	losses     int
	lossy      int // histories with losses
	timeouts   int
	rounds     int
	failed     int // rounds that could not be prepared, disturbed or cleaned up
	beside     int // rounds with bystanders
	busy       int // of them, those on a machine too busy to judge rates
}

// enough is the number of a strategy's histories from which on holds and refusals are required. On
// a busy machine a round or two may have none.
const enough = 24

// tried has the counts of a strategy's histories.
type tried struct{ histories, holds, refusals int }

func newChecker(out io.Writer, dir string) *checker {
	return &checker{out: out, dir: dir, slots: make(chan struct{}, 2), faults: map[string]int{}, tried: map[string]*tried{}}
}

func (j *checker) fault(kind string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.faults[kind]++
}

// take checks the histories of a round.
func (j *checker) take(r *round, events []history.Event) {
	j.mu.Lock()
	j.rounds++
	j.mu.Unlock()
	for name, part := range history.Names(events) {
		of, _, _ := strings.Cut(name, ".")
		all := slices.Concat(r.groups, r.beside)
		g := all[slices.IndexFunc(all, func(g group) bool { return g.Name == of })]
		j.pending.Go(func() {
			j.slots <- struct{}{}
			defer func() { <-j.slots }()
			j.add(r, g, history.Check(history.Settle(part, r.rec.Now()), g.Rules, checkLimit))
		})
	}
}

func (j *checker) add(r *round, g group, res history.Result) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.operations += res.Operations
	j.histories++
	j.checked += res.Checked
	j.losses += res.Losses
	j.holds += res.Holds
	j.resumes += res.Resumes
	j.handOvers += res.HandOvers
	if g.Cohort != nil {
		j.cohorts++
	}
	if j.tried[g.Strategy] == nil {
		j.tried[g.Strategy] = &tried{}
	}
	t := j.tried[g.Strategy]
	t.histories++
	t.holds += res.Holds
	t.refusals += res.Refusals
	switch res.Verdict {
	case history.Loss:
		j.lossy++
		return
	case history.Kept:
		return
	case history.Unknown:
		j.timeouts++
	case history.Violation:
		j.violations++
	}
	fmt.Fprintf(j.out, "%s: %s (round %d at %s, %s): %s\n", strings.ToUpper(string(res.Verdict)), res.Name, r.number, r.deployment.topology, r.name, res.Reason)
	paths, err := res.Save(j.dir)
	for _, p := range paths {
		fmt.Fprintln(j.out, "  written:", p)
	}
	if err != nil {
		fmt.Fprintln(j.out, "  not written:", err)
	}
}

// census counts a complaint about remaining keys as a violation.
func (j *checker) census(r *round, complaint string) {
	if complaint != "" {
		j.complain(r, fmt.Sprintf("census-%d.txt", r.number), complaint)
	}
}

// bystanders counts the effects of a trouble on bystanders as a violation.
func (j *checker) bystanders(r *round, events []history.Event) {
	events = history.Settle(events, r.rec.Now())
	complaints, busy := r.containment().check(events)
	j.mu.Lock()
	j.beside++
	if busy {
		j.busy++
	}
	for _, e := range events {
		if e.Kind == history.Acquire || e.Kind == history.Release {
			j.operations++
		}
	}
	j.mu.Unlock()
	if len(complaints) > 0 {
		text := fmt.Sprintf("%d complaints of bystanders: %s", len(complaints), strings.Join(complaints, "\n"))
		j.complain(r, fmt.Sprintf("beside-%d.txt", r.number), text)
	}
}

// workers counts a hung or crashed worker process as a violation.
func (j *checker) workers(r *round, err error) {
	if err != nil {
		j.complain(r, fmt.Sprintf("worker-%d.txt", r.number), err.Error())
	}
}

// complain counts a violation outside of the histories.
func (j *checker) complain(r *round, file, complaint string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.violations++
	first, _, _ := strings.Cut(complaint, "\n")
	fmt.Fprintf(j.out, "VIOLATION: round %d at %s (%s): %s\n", r.number, r.deployment.topology, r.name, first)
	path := filepath.Join(j.dir, file)
	err := os.MkdirAll(j.dir, 0o750)
	if err == nil {
		err = os.WriteFile(path, []byte(complaint+"\n"), 0o600)
	}
	if err != nil {
		fmt.Fprintln(j.out, "  not written:", err)
		return
	}
	fmt.Fprintln(j.out, "  written:", path)
}

// fail counts a round with a fault that could not be made or undone.
func (j *checker) fail(err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.failed++
	fmt.Fprintln(j.out, "FAILED:", err)
}

// broken reports whether a round so far had a violation, after its histories are checked.
func (j *checker) broken() bool {
	j.pending.Wait()
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.violations > 0
}

// logs saves the logs of the servers after a violation.
func (j *checker) logs(s *deployment) error {
	j.pending.Wait()
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.violations == 0 {
		return nil
	}
	path := filepath.Join(j.dir, "servers-"+strings.ReplaceAll(s.topology, " ", "-")+".log")
	fmt.Fprintln(j.out, "  written:", path)
	return os.WriteFile(path, []byte(s.log()), 0o600)
}

func (j *checker) progress(since time.Duration) {
	j.mu.Lock()
	defer j.mu.Unlock()
	fmt.Fprintf(j.out, "%5s  rounds=%d histories=%d operations=%d faults=%d losses=%d violations=%d timeouts=%d\n",
		since.Round(time.Second), j.rounds, j.histories, j.operations, j.faultCount(), j.losses, j.violations, j.timeouts)
}

// faultCount returns the number of faults. The mutex is held.
func (j *checker) faultCount() int {
	n := 0
	for _, k := range j.faults {
		n += k
	}
	return n
}

// inconclusive returns the reasons for which a run proves nothing.
func (j *checker) inconclusive() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	var errs []error
	if j.rounds == 0 {
		errs = append(errs, errors.New("no round was judged"))
	}
	if j.timeouts > 0 {
		errs = append(errs, fmt.Errorf("the checks of %d histories ran out of time", j.timeouts))
	}
	for _, strategy := range slices.Sorted(maps.Keys(j.tried)) {
		if t := j.tried[strategy]; t.histories >= enough && (t.holds == 0 || t.refusals == 0) {
			errs = append(errs, fmt.Errorf("%s: %d holds and %d refusals in %d histories: that proves nothing", strategy, t.holds, t.refusals, t.histories))
		}
	}
	if j.cohorts >= enough && j.handOvers == 0 {
		errs = append(errs, fmt.Errorf("no lock was handed over in %d histories: that proves nothing", j.cohorts))
	}
	return errors.Join(errs...)
}

// printTotals prints the totals.
func (j *checker) printTotals(seed uint64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	fmt.Fprintln(j.out, "faults by kind:")
	for _, kind := range slices.Sorted(maps.Keys(j.faults)) {
		fmt.Fprintf(j.out, "  %6d  %s\n", j.faults[kind], kind)
	}
	for _, strategy := range slices.Sorted(maps.Keys(j.tried)) {
		t := j.tried[strategy]
		fmt.Fprintf(j.out, "%s: histories=%d holds=%d refusals=%d\n", strategy, t.histories, t.holds, t.refusals)
	}
	fmt.Fprintf(j.out, "rounds=%d failed=%d histories=%d holds=%d resumed=%d handed-over=%d checked=%d\n",
		j.rounds, j.failed, j.histories, j.holds, j.resumes, j.handOvers, j.checked)
	fmt.Fprintf(j.out, "bystanders: rounds=%d, rates not judged in %d of them, since the machine was too busy\n", j.beside, j.busy)
	fmt.Fprintf(j.out, "losses=%d holds in %d histories, where a server may lose its state\n", j.losses, j.lossy)
	fmt.Fprintf(j.out, "timeouts=%d histories whose check ran out of time\n", j.timeouts)
	fmt.Fprintf(j.out, "operations=%d faults=%d violations=%d seed=%d\n", j.operations, j.faultCount(), j.violations, seed)
}
