package adapter_test

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/driver/adapter"
)

func TestAwaitAnswers(t *testing.T) {
	t.Parallel()
	refused := errors.New("refused")
	for name, ctx := range map[string]context.Context{"endless": context.WithoutCancel(t.Context()), "cancellable": t.Context()} {
		v, err := adapter.Await(ctx, func() (int, error) { return 7, refused })
		if v != 7 || !errors.Is(err, refused) || errors.Is(err, driver.ErrNotSent) {
			t.Errorf("%s: %d, %v; want the call's 7, refused", name, v, err)
		}
	}
}

func TestAwaitOfAnEndedContextCallsNothing(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	v, err := adapter.Await(ctx, func() (int, error) {
		t.Error("called")
		return 7, nil
	})
	if v != 0 {
		t.Errorf("value %d beside the error", v)
	}
	check.Error(t, "Await", err, driver.ErrNotSent, context.Canceled)
}

// If the call has returned and ctx has ended, Await returns the call's result. On one processor,
// Await runs after the end of ctx only once the call has returned.
func TestAwaitPrefersTheAnswer(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	answered := 0
	for range 20 {
		ctx, cancel := context.WithCancel(t.Context())
		v, err := adapter.Await(ctx, func() (int, error) {
			cancel()
			return 7, nil
		})
		switch {
		case v == 7 && err == nil:
			answered++
		case v != 0 || !errors.Is(err, context.Canceled):
			t.Errorf("Await: %d, %v; want the answer or the end of ctx", v, err)
		}
	}
	if answered == 0 {
		t.Error("the answer was never taken")
	}
}

func TestAwaitOfEndlessContextTakesNoGoroutine(t *testing.T) {
	ctx := context.WithoutCancel(t.Context())
	call := func() (int, error) { return 1, nil }
	if got := testing.AllocsPerRun(100, func() { _, _ = adapter.Await(ctx, call) }); got != 0 {
		t.Errorf("%v allocations, want none", got)
	}
}

// Await returns although the client ignores its context; the call goes on in the background. Its
// PendingError reports the late answer to callbacks set before and after it.
func TestAwaitTellsTheLateAnswer(t *testing.T) {
	t.Parallel()
	refused := errors.New("refused")
	check.EachInFakeTime(t, map[string]error{"won": nil, "refused": refused}, func(t *testing.T, answer error) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		v, err := adapter.Await(ctx, func() (int, error) {
			<-time.After(5 * time.Second)
			return 7, answer
		})
		check.Took(t, "Await", start, time.Second)
		check.Equal(t, "value beside the error", v, 0)
		check.Error(t, "Await", err, context.DeadlineExceeded)
		check.IsNot(t, err, driver.ErrNotSent) // a call under way may have been sent
		pending, ok := errors.AsType[*driver.PendingError](err)
		if !ok {
			t.Fatalf("%v is no PendingError", err)
		}
		var heard atomic.Int32
		hear := func(v any, err error) {
			heard.Add(1)
			if v != 7 || !errors.Is(err, answer) {
				t.Errorf("heard %v, %v; want 7, %v", v, err, answer)
			}
		}
		pending.OnAnswer(hear)
		pending.OnAnswer(hear)
		if heard.Load() != 0 {
			t.Errorf("heard before the answer")
		}
		check.Advance(4 * time.Second)
		synctest.Wait()
		pending.OnAnswer(hear)
		if heard.Load() != 3 {
			t.Errorf("heard %d times, want 3", heard.Load())
		}
	})
}

// closer counts how often it is closed.
type closer struct{ closed atomic.Int32 }

func (c *closer) Close() error { c.closed.Add(1); return nil }

// A connection is closed if it comes too late, and only then.
func TestAwaitClosesLateConnections(t *testing.T) {
	t.Parallel()
	type test struct {
		takes  time.Duration
		err    error
		closed int32
	}
	refused := errors.New("refused")
	check.EachInFakeTime(t, map[string]test{
		"in time": {takes: time.Second}, "too late": {takes: 5 * time.Second, closed: 1},
		"refused": {takes: time.Second, err: refused}, "refused too late": {takes: 5 * time.Second, err: refused},
	}, func(t *testing.T, tt test) {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		c := new(closer)
		got, err := adapter.Await(ctx, func() (*closer, error) {
			check.Advance(tt.takes)
			return c, tt.err
		})
		switch {
		case tt.takes > 2*time.Second:
			check.Error(t, "Await", err, context.DeadlineExceeded)
		case got != c || !errors.Is(err, tt.err):
			t.Errorf("Await: %p, %v; want %p, %v", got, err, c, tt.err)
		}
		<-time.After(time.Minute)
		check.Equal(t, "closed", c.closed.Load(), tt.closed)
	})
}
