package check_test

import (
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
)

// recorder is a testing.TB that records a failure and goes on.
type recorder struct {
	testing.TB
	failed, fatal bool
}

func (*recorder) Helper() {}

func (r *recorder) Errorf(string, ...any) { r.failed = true }

func (r *recorder) Fatalf(string, ...any) { r.failed, r.fatal = true, true }

// Each check passes the demanded value, and fails any other.
func TestChecks(t *testing.T) {
	t.Parallel()
	eof, other := fmt.Errorf("wrapped: %w", io.EOF), errors.New("other")
	both := errors.Join(eof, other)
	for name, tt := range map[string]struct {
		passes, fails []func(tb testing.TB)
	}{
		"Error": {
			[]func(testing.TB){
				func(tb testing.TB) { check.Error(tb, "a", nil) },
				func(tb testing.TB) { check.Error(tb, "a", nil, nil) },
				func(tb testing.TB) { check.Error(tb, "a", both, io.EOF, other) },
			},
			[]func(testing.TB){
				func(tb testing.TB) { check.Error(tb, "a", eof) },
				func(tb testing.TB) { check.Error(tb, "a", eof, nil) },
				func(tb testing.TB) { check.Error(tb, "a", nil, io.EOF) },
				func(tb testing.TB) { check.Error(tb, "a", eof, io.EOF, other) },
			},
		},
		"Is and OK": {
			[]func(testing.TB){
				func(tb testing.TB) { check.Is(tb, eof, io.EOF) },
				func(tb testing.TB) { check.Is(tb, nil) },
				func(tb testing.TB) { check.OK(tb, nil) },
			},
			[]func(testing.TB){
				func(tb testing.TB) { check.Is(tb, eof, other) },
				func(tb testing.TB) { check.Is(tb, eof) },
				func(tb testing.TB) { check.OK(tb, eof) },
			},
		},
		"IsNot and Only": {
			[]func(testing.TB){
				func(tb testing.TB) { check.IsNot(tb, nil, io.EOF) },
				func(tb testing.TB) { check.IsNot(tb, eof, other) },
				func(tb testing.TB) { check.Only(tb, eof, io.EOF, other) },
			},
			[]func(testing.TB){
				func(tb testing.TB) { check.IsNot(tb, eof, other, io.EOF) },
				func(tb testing.TB) { check.Only(tb, both, io.EOF, other) },
				func(tb testing.TB) { check.Only(tb, nil, io.EOF) },
			},
		},
		"bounds": {
			[]func(testing.TB){
				func(tb testing.TB) { check.AtMost(tb, "a", 2, 2) },
				func(tb testing.TB) { check.AtLeast(tb, "a", 2, 2) },
				func(tb testing.TB) { check.Within(tb, "a", 2, 2, 3) },
				func(tb testing.TB) { check.Within(tb, "a", 3, 2, 3) },
			},
			[]func(testing.TB){
				func(tb testing.TB) { check.AtMost(tb, "a", 3, 2) },
				func(tb testing.TB) { check.AtLeast(tb, "a", 1, 2) },
				func(tb testing.TB) { check.Within(tb, "a", 1, 2, 3) },
				func(tb testing.TB) { check.Within(tb, "a", 4, 2, 3) },
			},
		},
		"Equal and EqualSlices": {
			[]func(testing.TB){
				func(tb testing.TB) { check.Equal(tb, "a", "x", "x") },
				func(tb testing.TB) { check.Equal[any](tb, "a", int64(1), int64(1)) },
				func(tb testing.TB) { check.EqualSlices(tb, "a", []int{1, 2}, []int{1, 2}) },
				func(tb testing.TB) { check.EqualSlices(tb, "a", nil, []int{}) },
			},
			[]func(testing.TB){
				func(tb testing.TB) { check.Equal(tb, "a", "x", "y") },
				func(tb testing.TB) { check.Equal[any](tb, "a", int64(1), 1) },
				func(tb testing.TB) { check.EqualSlices(tb, "a", []int{1, 2}, []int{2, 1}) },
				func(tb testing.TB) { check.EqualSlices(tb, "a", []int{1, 2}, []int{1}) },
			},
		},
		"Contains": {
			[]func(testing.TB){func(tb testing.TB) { check.Contains(tb, "a", "xyz", "yz") }},
			[]func(testing.TB){func(tb testing.TB) { check.Contains(tb, "a", "xyz", "xz") }},
		},
		"Panics": {
			[]func(testing.TB){
				func(tb testing.TB) { check.Panics(tb, "a", func() { panic("a") }) },
				func(tb testing.TB) { check.Panics(tb, nil, func() { panic("a") }) },
			},
			[]func(testing.TB){
				func(tb testing.TB) { check.Panics(tb, "b", func() { panic("a") }) },
				func(tb testing.TB) { check.Panics(tb, nil, func() {}) },
			},
		},
	} {
		for failed, checks := range map[bool][]func(testing.TB){false: tt.passes, true: tt.fails} {
			for i, run := range checks {
				r := new(recorder)
				if run(r); r.failed != failed {
					t.Errorf("%s, check %d: failed %v, want %v", name, i, r.failed, failed)
				}
			}
		}
	}
}

func TestMust(t *testing.T) {
	t.Parallel()
	well, ill := new(recorder), new(recorder)
	check.Must(well, nil)
	check.Must(ill, io.EOF)
	if well.failed || !ill.fatal {
		t.Errorf("nil fails: %v, an error ends the test: %v", well.failed, ill.fatal)
	}
}

// Eventually asks again until the answer is yes, but not for ever.
func TestEventually(t *testing.T) {
	check.InFakeTime(t, func(t *testing.T) {
		asked := 0
		check.Eventually(t, "the third answer is yes", func() bool { asked++; return asked == 3 })
		check.Equal(t, "calls", asked, 3)
		r := &recorder{TB: t}
		check.Eventually(r, "never", func() bool { return false })
		check.Equal(t, "Eventually fails what never happens", r.fatal, true)
	})
}

func TestClosed(t *testing.T) {
	t.Parallel()
	c := make(chan struct{})
	check.Equal(t, "an open channel is closed", check.Closed(c), false)
	close(c)
	check.Equal(t, "a closed channel is closed", check.Closed(c), true)
}

func TestTook(t *testing.T) {
	check.InFakeTime(t, func(t *testing.T) {
		start := time.Now()
		check.Advance(time.Hour)
		for want, failed := range map[time.Duration]bool{time.Hour - 1: true, time.Hour: false, time.Hour + 1: true} {
			r := new(recorder)
			if check.Took(r, "a", start, want); r.failed != failed {
				t.Errorf("an hour, and want %v: failed %v, want %v", want, r.failed, failed)
			}
		}
	})
}

// All entries of a table run.
func TestTables(t *testing.T) {
	t.Parallel()
	var sum atomic.Int32
	t.Cleanup(func() { // behind the subtests
		check.Equal(t, "sum of the entries that ran", sum.Load(), 33)
	})
	check.Each(t, map[string]int32{"one": 1, "two": 2}, func(_ *testing.T, n int32) { sum.Add(n) })
	check.EachInFakeTime(t, map[string]int32{"ten": 10, "twenty": 20}, func(_ *testing.T, n int32) {
		check.Advance(time.Hour)
		sum.Add(n)
	})
}
