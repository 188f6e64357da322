package suite

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Recorder is a testing.TB that keeps the reports of a case. It runs cases outside of go test, and
// those meant to fail. A missing method panics, and so counts as a failure.
type Recorder struct {
	testing.TB
	name   string
	ctx    context.Context
	cancel context.CancelFunc

	mu       sync.Mutex
	failed   bool
	skipped  bool
	log      []string
	cleanups []func()
}

// Record runs f as a test of its own, to its end, and returns its reports. The test's context ends
// with ctx.
func Record(ctx context.Context, name string, f func(testing.TB)) *Recorder {
	r := &Recorder{name: name}
	r.ctx, r.cancel = context.WithCancel(ctx)
	r.apart(func() { f(r) })
	r.cancel()
	for r.cleanUp() {
	}
	return r
}

// apart runs f in a goroutine of its own, to let it end early, and records a panic as a failure.
func (r *Recorder) apart(f func()) {
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

func (r *Recorder) cleanUp() bool {
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

// Helper does nothing.
func (r *Recorder) Helper() {}

// Name returns the test's name.
func (r *Recorder) Name() string { return r.name }

// Context returns the context of the test.
func (r *Recorder) Context() context.Context { return r.ctx }

// Logf records a line.
func (r *Recorder) Logf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.log = append(r.log, fmt.Sprintf(format, args...))
}

// Errorf records a failure.
func (r *Recorder) Errorf(format string, args ...any) {
	r.Logf(format, args...)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed = true
}

// Fatalf records a failure, and ends the test.
func (r *Recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}

// Skipf records why the test is skipped, and ends it.
func (r *Recorder) Skipf(format string, args ...any) {
	r.Logf(format, args...)
	r.mu.Lock()
	r.skipped = true
	r.mu.Unlock()
	runtime.Goexit()
}

// Skipped reports whether the test was skipped.
func (r *Recorder) Skipped() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.skipped
}

// Failed implements testing.TB.
func (r *Recorder) Failed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failed
}

// Cleanup implements testing.TB.
func (r *Recorder) Cleanup(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cleanups = append(r.cleanups, f)
}

// TempDir implements testing.TB.
func (r *Recorder) TempDir() string {
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

// First returns the first reported line.
func (r *Recorder) First() string {
	line, _, _ := strings.Cut(strings.Join(r.Lines(), "\n"), "\n")
	return line
}

// Lines returns the reported lines.
func (r *Recorder) Lines() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.log)
}
