package redistest_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

var (
	_ redistest.TB = (*testing.T)(nil)
	_ redistest.TB = (*testing.B)(nil)
	_ redistest.TB = (*testing.F)(nil)
)

// recorder is a TB from outside package testing.
type recorder struct {
	*testing.T // for methods not recorded
	said       []string
	failed     bool
	cleanups   []func()
}

func (r *recorder) sayf(what, format string, args ...any) {
	r.said = append(r.said, what+": "+fmt.Sprintf(format, args...))
}
func (r *recorder) Logf(format string, args ...any) { r.sayf("log", format, args...) }
func (r *recorder) Errorf(format string, args ...any) {
	r.failed = true
	r.sayf("error", format, args...)
}
func (r *recorder) Fatalf(format string, args ...any) {
	r.failed = true
	r.sayf("fatal", format, args...)
	runtime.Goexit()
}
func (r *recorder) Skipf(format string, args ...any) {
	r.sayf("skip", format, args...)
	runtime.Goexit()
}
func (r *recorder) Failed() bool     { return r.failed }
func (r *recorder) Cleanup(f func()) { r.cleanups = append(r.cleanups, f) }

// run runs a test with the recorder, and its cleanups.
func (r *recorder) run(test func(redistest.TB)) {
	run := func(f func()) {
		done := make(chan struct{})
		go func() {
			defer close(done)
			f()
		}()
		<-done
	}
	run(func() { test(r) })
	for _, f := range r.cleanups {
		run(f)
	}
}

func (r *recorder) want(t *testing.T, prefixes ...string) {
	t.Helper()
	ok := len(r.said) == len(prefixes)
	for i := 0; ok && i < len(prefixes); i++ {
		ok = strings.HasPrefix(r.said[i], prefixes[i])
	}
	if !ok {
		t.Errorf("said %q, want %q", r.said, prefixes)
	}
}

func TestNeed(t *testing.T) {
	for _, tc := range []struct {
		program, ci string
		available   bool
		want        []string
	}{
		{"no-such-program", "", false, []string{"skip: "}},
		{"no-such-program", "false", false, []string{"skip: "}},
		{"no-such-program", "true", false, []string{"fatal: "}},
		{"go", "true", true, nil},
		{"go", "", true, nil},
	} {
		t.Run(tc.program+" CI="+tc.ci, func(t *testing.T) {
			t.Setenv("HOLDFAST_REDIS_SERVER", tc.program)
			t.Setenv("CI", tc.ci)
			check.Equal(t, "Available", redistest.Available(), tc.available)
			r := &recorder{T: t}
			r.run(func(tb redistest.TB) { redistest.Need(tb) })
			r.want(t, tc.want...)
			if tc.available {
				return
			}
			r = &recorder{T: t}
			r.run(func(tb redistest.TB) {
				redistest.StartSentinel(tb, redistest.Options{})
				t.Error("started without a program")
			})
			r.want(t, tc.want...)
		})
	}
}

// With -short no set of servers starts, shared or not.
func TestShort(t *testing.T) {
	redistest.Need(t)
	short := flag.Lookup("test.short").Value
	before := short.String()
	check.Must(t, short.Set("true"))
	t.Cleanup(func() { _ = short.Set(before) }) // the old value cannot be wrong
	cluster := redistest.Share(func(context.Context) (*redistest.Cluster, error) { return nil, errors.New("started") })
	sentinel := redistest.Share(func(context.Context) (*redistest.Sentinel, error) { return nil, errors.New("started") })
	for name, start := range map[string]func(redistest.TB){
		"a cluster":       func(tb redistest.TB) { redistest.StartCluster(tb, 3, redistest.Options{}) },
		"Sentinels":       func(tb redistest.TB) { redistest.StartSentinel(tb, redistest.Options{}) },
		"three masters":   func(tb redistest.TB) { redistest.StartN(tb, 3, redistest.Options{}) },
		"a shared set":    func(tb redistest.TB) { cluster.Get(tb) },
		"another of them": func(tb redistest.TB) { sentinel.Get(tb) },
	} {
		r := &recorder{T: t}
		r.run(start)
		r.want(t, "skip: ")
		if t.Failed() {
			t.Fatal(name)
		}
	}
}

func TestStartTellsTheTest(t *testing.T) {
	redistest.Need(t)
	t.Parallel()
	r := &recorder{T: t}
	r.run(func(tb redistest.TB) { redistest.Start(tb, redistest.Options{Args: []string{"--port", "1"}}) })
	r.want(t, "fatal: redistest: Options.Args must not contain --port")

	r = &recorder{T: t}
	var s *redistest.Server
	r.run(func(tb redistest.TB) { s = redistest.Start(tb, redistest.Options{}) })
	r.want(t) // nothing: it did not fail
	check.Equal(t, "runs after the test's cleanup", s.Running(), false)

	r = &recorder{T: t}
	r.run(func(tb redistest.TB) {
		all := redistest.StartN(tb, 2, redistest.Options{})
		all[1].MustCommand(tb, "NOSUCH", "arg")
		t.Error("MustCommand returned")
	})
	r.want(t, "fatal: redistest: NOSUCH", "log: server log of TestStartTellsTheTest")
	if log := r.said[1]; strings.Count(log, "Ready to accept connections") != 2 {
		t.Errorf("not the logs of two servers: %s", log)
	}

	r = &recorder{T: t}
	r.run(func(tb redistest.TB) {
		s := redistest.Start(tb, redistest.Options{})
		for range 60 {
			s.MustCommand(tb, "SAVE") // logs a line, or two from Redis 8.6 on
		}
		tb.Fatalf("said before the log")
	})
	r.want(t, "fatal: said before the log", "log: server log of TestStartTellsTheTest")
	if log := r.said[1]; strings.Count(log, " saved") != 40 || !strings.Contains(log, "are left out") {
		t.Errorf("not the end of a long log alone: %s", log)
	}
}

func TestSharedStartsWhenNeededAndClosesWithTheTests(t *testing.T) {
	redistest.Need(t)
	t.Parallel()
	unused := redistest.Share(func(context.Context) (*redistest.Cluster, error) {
		t.Error("started, though nobody asked")
		return nil, nil
	})
	broken := redistest.Share(func(context.Context) (*redistest.Server, error) { return nil, errors.New("broken") })
	used := redistest.Share(func(ctx context.Context) (*redistest.Server, error) {
		return redistest.Launch(ctx, redistest.Options{})
	})
	var s *redistest.Server
	m := redistest.CloseAfter(runs(func() int {
		s = used.Get(t)
		r := &recorder{T: t}
		r.run(func(tb redistest.TB) {
			used.Get(tb)
			broken.Get(tb)
		})
		r.want(t, "fatal: broken", "log: log of the server that TestShared")
		check.Equal(t, "runs until the end of all tests", s.Running(), true)
		return 7
	}), unused, broken, used)
	check.Equal(t, "exit code", m.Run(), 7)
	check.Equal(t, "runs after the tests", s.Running(), false)
	r := &recorder{T: t}
	r.run(func(tb redistest.TB) { used.Get(tb) })
	r.want(t, "fatal: redistest: Get after Close")
}

type runs func() int

func (f runs) Run() int { return f() }
