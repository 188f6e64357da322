package conformance

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// recorder is a TB that keeps what a case reports. It lets a test run cases that are to fail.
type recorder struct {
	name   string
	ctx    context.Context
	cancel context.CancelFunc

	mu       sync.Mutex
	failed   bool
	skipped  bool
	log      []string
	cleanups []func()
}

// record runs f as a test of its own, to its end, and returns what it reported.
func record(name string, f func(TB)) *recorder {
	r := &recorder{name: name}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	r.apart(func() { f(r) })
	r.cancel()
	for r.cleanUp() {
	}
	return r
}

// apart runs f in a goroutine of its own, so that it can end early, and notes a panic as a failure.
func (r *recorder) apart(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if p := recover(); p != nil {
				r.Errorf("panic: %v", p)
			}
		}()
		f()
	}()
	<-done
}

func (r *recorder) cleanUp() bool {
	r.mu.Lock()
	n := len(r.cleanups)
	if n == 0 {
		r.mu.Unlock()
		return false
	}
	f := r.cleanups[n-1]
	r.cleanups = r.cleanups[:n-1]
	r.mu.Unlock()
	r.apart(f)
	return true
}

func (r *recorder) Helper()                  {}
func (r *recorder) Name() string             { return r.name }
func (r *recorder) Context() context.Context { return r.ctx }

func (r *recorder) Logf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.log = append(r.log, fmt.Sprintf(format, args...))
}

func (r *recorder) Errorf(format string, args ...any) {
	r.Logf(format, args...)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed = true
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}

func (r *recorder) Skipf(format string, args ...any) {
	r.Logf(format, args...)
	r.mu.Lock()
	r.skipped = true
	r.mu.Unlock()
	runtime.Goexit()
}

func (r *recorder) Failed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failed
}

func (r *recorder) Cleanup(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cleanups = append(r.cleanups, f)
}

func (r *recorder) TempDir() string {
	dir, err := os.MkdirTemp("", "conformance-")
	if err != nil {
		r.Fatalf("%v", err)
	}
	r.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			r.Errorf("%v", err)
		}
	})
	return dir
}

// first is the first line of what was reported.
func (r *recorder) first() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.log) == 0 {
		return ""
	}
	line, _, _ := strings.Cut(r.log[0], "\n")
	return line
}

// impatient is how long a case that is to fail waits for what does not come.
const impatient = 4 * time.Second

// slots bounds how many cases run at once, quorumSlots how many with five servers; they mostly
// wait.
var slots, quorumSlots = make(chan struct{}, 24), make(chan struct{}, 8)

// failing runs the cases with these names on h, at once and on servers of their own, and returns
// those that failed.
func failing(h *Harness, names []string) map[string]*recorder {
	var wg sync.WaitGroup
	var mu sync.Mutex
	failed := map[string]*recorder{}
	for i := range cases {
		c := &cases[i]
		if !c.applies(h, Miniredis) || !slices.Contains(names, c.name) {
			continue
		}
		slots := slots
		if c.quorum {
			slots = quorumSlots
		}
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			r := record(c.name, func(tb TB) {
				t := newCaseT(tb, h, c.start(tb, Miniredis))
				t.patience, t.prompt, t.leaves = impatient, impatient, c.leavesKeys()
				c.run(t)
			})
			if r.Failed() {
				mu.Lock()
				defer mu.Unlock()
				failed[c.name] = r
			}
		})
	}
	wg.Wait()
	return failed
}

// suspect is something flawed, and the cases that must catch it.
type suspect struct {
	name          string
	flawed, sound *Harness
	caught        []string
}

// convict demands that the suite fails on each suspect by the cases that were made for its flaw,
// and that these pass without the flaw. All run at once, and then report one by one.
func convict(t *testing.T, suspects []suspect) {
	type verdict struct{ flawed, sound map[string]*recorder }
	verdicts := make([]verdict, len(suspects))
	var wg sync.WaitGroup
	for i, s := range suspects {
		wg.Go(func() { verdicts[i].flawed = failing(s.flawed, s.caught) })
		wg.Go(func() { verdicts[i].sound = failing(s.sound, s.caught) })
	}
	wg.Wait()
	for i, s := range suspects {
		t.Run(s.name, func(t *testing.T) {
			for name, r := range verdicts[i].sound {
				t.Errorf("without the flaw too %q fails: %s", name, r.first())
			}
			for _, name := range s.caught {
				if !slices.ContainsFunc(cases, func(c testCase) bool { return c.name == name && c.applies(s.flawed, Miniredis) }) {
					t.Errorf("there is no case %q that applies", name)
				}
				if r, caught := verdicts[i].flawed[name]; caught {
					t.Logf("caught by %q: %s", name, r.first())
				} else {
					t.Errorf("not caught by %q", name)
				}
			}
		})
	}
}
