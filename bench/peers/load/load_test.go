//go:build unix

package load

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
)

// A sound lock is counted without violations, and a lock without exclusion is found out, in one
// process and in two.
func TestViolations(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		contender string
		processes int // 0: this one
		violated  bool
	}{
		{"mutex", 0, false},
		{"broken", 0, true},
		{"mutex", 1, false},
		{"mutex", 2, true}, // each process has its own
		{"broken", 2, true},
	} {
		t.Run(c.contender, func(t *testing.T) {
			t.Parallel()
			job, sections := newJob(t, c.contender)
			job.For = 200 * time.Millisecond
			run := func() (*Tally, error) { return Run(job, Hooks{}) }
			if c.processes > 0 {
				run = func() (*Tally, error) { return RunProcesses(t.Context(), job, c.processes, Hooks{}) }
			}
			tally := locker.Must(run())
			// Again if no cycle ended in the measured time, or no holds overlapped: the machine was busy.
			for tally.Stuck == 0 && tally.Errors == 0 && (tally.Total() == 0 || c.violated && sections.Violations() == 0) {
				tally = locker.Must(run())
			}
			check.Equal(t, "violations are found", sections.Violations() > 0, c.violated)
			if tally.Total() == 0 || tally.Stuck != 0 || tally.Errors != 0 || len(tally.Cycles) != job.Goroutines*max(c.processes, 1) {
				t.Errorf("cycles %v, %d stuck, %d errors", tally.Cycles, tally.Stuck, tally.Errors)
			}
		})
	}
}

// A goroutine that waits for ever is reported, with the time waited.
func TestStuck(t *testing.T) {
	t.Parallel()
	check.EachInFakeTime(t, map[string]string{"hanging": "hanging", "frozen": "frozen"}, func(t *testing.T, name string) {
		job, _ := newJob(t, name)
		job.Grace = 100 * time.Millisecond
		tally := locker.Must(Run(job, Hooks{}))
		if tally.Stuck != job.Goroutines || tally.Times.Max() < job.Grace {
			t.Errorf("%d of %d are stuck, for %v at most", tally.Stuck, job.Goroutines, tally.Times.Max())
		}
	})
}

// Errors are counted, and end a goroutine with no other result.
func TestErrors(t *testing.T) {
	check.InFakeTime(t, func(t *testing.T) {
		job, _ := newJob(t, "failing")
		tally := locker.Must(Run(job, Hooks{}))
		if want := int64(maxErrors * job.Goroutines); tally.Errors != want || tally.Error != "acquire: no more" {
			t.Errorf("%d errors, the first %q, want %d", tally.Errors, tally.Error, want)
		}
	})
}

// The hooks are called once each, in their order.
func TestHooks(t *testing.T) {
	t.Parallel()
	job, _ := newJob(t, "mutex")
	var order []string
	note := func(name string) func() { return func() { order = append(order, name) } }
	_, err := Run(job, Hooks{
		Ready: func() (time.Time, error) { note("ready")(); return time.Now(), nil },
		Begin: note("begin"), End: note("end"), Closing: note("closing"),
	})
	if got := strings.Join(order, " "); err != nil || got != "ready begin end closing" {
		t.Errorf("%s, %v", got, err)
	}
}

func TestBadJobs(t *testing.T) {
	t.Parallel()
	good, _ := newJob(t, "mutex")
	empty := filepath.Join(t.TempDir(), "empty")
	check.Must(t, os.WriteFile(empty, nil, 0o600))
	type test struct {
		edit func(*Job)
	}
	check.Each(t, map[string]test{
		"no such contender": {func(j *Job) { j.Contender = "nobody" }},
		"no sections":       {func(j *Job) { j.Sections += "?" }},
		"empty sections":    {func(j *Job) { j.Sections = empty }},
	}, func(t *testing.T, c test) {
		job := good
		c.edit(&job)
		check.Equal(t, "it ran", check.ErrOf(Run(job, Hooks{})) == nil, false)
		check.Equal(t, "a process ran it", check.ErrOf(RunProcesses(t.Context(), job, 1, Hooks{})) == nil, false)
	})
}
