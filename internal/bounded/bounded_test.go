package bounded_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/bounded"
	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker/driver"
)

type key string

// endless returns a context that cannot end, with a value.
func endless(t *testing.T) context.Context {
	return context.WithValue(context.WithoutCancel(t.Context()), key("k"), "v")
}

// dated is a context with a deadline and no Done, as a client's own context type may be.
type dated struct {
	context.Context
	deadline time.Time
}

func (d dated) Deadline() (time.Time, bool) { return d.deadline, true }

// wantEnd checks that ctx has not ended, or has ended with want.
func wantEnd(ctx context.Context, t *testing.T, what string, want error) {
	t.Helper()
	if got := ctx.Err(); !errors.Is(got, want) || (got == nil) != (want == nil) {
		t.Errorf("%s: Err %v, want %v", what, got, want)
	}
	if got := check.Closed(ctx.Done()); got != (want != nil) {
		t.Errorf("%s: Done is closed: %v, Err is %v", what, got, want)
	}
}

// A Context behaves the same over every parent that does not end first.
func TestBoundEndsAtItsDeadline(t *testing.T) {
	t.Parallel()
	check.EachInFakeTime(t, map[string]func(t *testing.T) context.Context{
		"endless":      endless,
		"cancellable":  func(t *testing.T) context.Context { return t.Context() },
		"dated later":  func(t *testing.T) context.Context { return dated{endless(t), time.Now().Add(time.Hour)} },
		"bounded":      func(t *testing.T) context.Context { return stopped(t, bounded.New(endless(t), time.Hour)) },
		"bounded over": func(t *testing.T) context.Context { return stopped(t, bounded.New(t.Context(), time.Hour)) },
	}, func(t *testing.T, parent func(t *testing.T) context.Context) {
		start := time.Now()
		b := bounded.New(parent(t), 3*time.Second)
		if d, ok := b.Deadline(); !ok || d.Sub(start) != 3*time.Second {
			t.Errorf("Deadline %v, %v; want 3s from now", d, ok)
		}
		wantEnd(b, t, "at first", nil)
		check.Advance(3*time.Second - 1)
		wantEnd(b, t, "just before", nil)
		<-b.Done()
		check.Took(t, "the wait for Done", start, 3*time.Second)
		wantEnd(b, t, "at the deadline", context.DeadlineExceeded)
		b.Stop()
		wantEnd(b, t, "after Stop", context.DeadlineExceeded)
	})
}

// stopped returns b, and stops it when the test ends.
func stopped(t *testing.T, b *bounded.Context) *bounded.Context {
	t.Cleanup(b.Stop)
	return b
}

func TestBoundTakesTheSoonerDeadline(t *testing.T) {
	check.InFakeTime(t, func(t *testing.T) {
		start := time.Now()
		soon := start.Add(time.Second)
		timer, cancel := context.WithDeadline(t.Context(), soon)
		defer cancel()
		outer := bounded.New(endless(t), time.Second)
		defer outer.Stop()
		for name, parent := range map[string]context.Context{
			"timer context": timer, "dated": dated{endless(t), soon}, "bounded": outer,
		} {
			b := stopped(t, bounded.New(parent, time.Minute))
			if d, _ := b.Deadline(); !d.Equal(soon) {
				t.Errorf("over %s: Deadline in %v, want the parent's", name, d.Sub(start))
			}
			<-b.Done()
			check.Took(t, "the wait for Done over "+name, start, time.Second)
			wantEnd(b, t, "over "+name, context.DeadlineExceeded)
		}
	})
}

func TestBoundEndsWithItsParent(t *testing.T) {
	check.InFakeTime(t, func(t *testing.T) {
		cause := errors.New("user went home")
		parent, cancel := context.WithCancelCause(t.Context())
		b := bounded.New(parent, time.Minute)
		defer b.Stop()
		nested := bounded.New(b, time.Second)
		defer nested.Stop()
		if !driver.Cancellable(b) || !driver.Cancellable(nested) {
			t.Error("a Context over a cancellable parent is not cancellable")
		}
		cancel(cause)
		synctest.Wait()
		for what, ctx := range map[string]context.Context{"bounded": b, "nested": nested} {
			wantEnd(ctx, t, what, context.Canceled)
			if got := context.Cause(ctx); !errors.Is(got, cause) {
				t.Errorf("%s: cause %v, want the parent's", what, got)
			}
		}
		wantEnd(bounded.New(parent, time.Minute), t, "made after the end", context.Canceled)
	})
}

func TestBoundStop(t *testing.T) {
	t.Parallel()
	check.EachInFakeTime(t, map[string]func(*testing.T) context.Context{
		"endless": endless, "cancellable": func(t *testing.T) context.Context { return t.Context() },
	}, func(t *testing.T, parent func(*testing.T) context.Context) {
		asked, unasked := bounded.New(parent(t), time.Second), bounded.New(parent(t), time.Second)
		done := asked.Done()
		for _, b := range []*bounded.Context{asked, unasked} {
			b.Stop()
			b.Stop()
		}
		if !check.Closed(done) {
			t.Error("Stop leaves those who wait for Done")
		}
		wantEnd(asked, t, "Done asked before Stop", context.Canceled)
		wantEnd(unasked, t, "Done asked after Stop", context.Canceled)
		check.Advance(time.Hour)
		// An ended context keeps its error: a waiter compares it with an earlier result.
		wantEnd(asked, t, "stopped, past its deadline", context.Canceled)
		wantEnd(unasked, t, "stopped, past its deadline", context.Canceled)
	})
}

// Once Err returns an error, Done is closed.
func TestBoundErrMeansDone(t *testing.T) {
	check.InFakeTime(t, func(t *testing.T) {
		wantEnd(bounded.New(endless(t), -time.Second), t, "bounded by a negative time", context.DeadlineExceeded)
		if !check.Closed(bounded.New(endless(t), -time.Second).Done()) {
			t.Error("bounded by a negative time: Done is open at first")
		}
		b := bounded.New(endless(t), time.Second)
		done := b.Done()
		timer := time.NewTimer(time.Second) // after b's: at the same instant either may come first
		<-timer.C
		if err := b.Err(); err == nil || !check.Closed(done) {
			t.Errorf("at the deadline Err is %v, and Done closed: %v", err, check.Closed(done))
		}
		b.Stop()
	})
}

func TestBoundIsAParent(t *testing.T) {
	check.InFakeTime(t, func(t *testing.T) {
		b := bounded.New(endless(t), time.Second)
		if b.Value(key("k")) != "v" {
			t.Error("a value of the parent is lost")
		}
		child, cancel := context.WithCancel(b)
		defer cancel()
		<-child.Done()
		wantEnd(child, t, "child", context.DeadlineExceeded)
		b.Stop()

		b = bounded.New(endless(t), time.Second)
		child, cancel = context.WithCancel(b)
		defer cancel()
		b.Stop()
		synctest.Wait()
		wantEnd(child, t, "child of a stopped one", context.Canceled)
	})
}

func TestCancellable(t *testing.T) {
	t.Parallel()
	short, shortOver := bounded.New(endless(t), time.Hour), bounded.New(t.Context(), time.Hour)
	defer short.Stop()
	defer shortOver.Stop()
	for _, tt := range []struct {
		name string
		ctx  context.Context
		want bool
	}{
		{"endless", endless(t), false},
		{"cancellable", t.Context(), true},
		{"dated", dated{endless(t), time.Now()}, false},
		{"bounded over endless", short, false},
		{"bounded over cancellable", shortOver, true},
		{"a value over bounded", context.WithValue(short, key("k"), 1), true}, // its parent is hidden
	} {
		if got := driver.Cancellable(tt.ctx); got != tt.want {
			t.Errorf("Cancellable of %s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

func TestBoundAllocates(t *testing.T) {
	ctx := context.WithoutCancel(t.Context())
	embedded := make([]bounded.Context, 101) // AllocsPerRun runs once more than its argument
	for name, tt := range map[string]struct {
		want float64
		f    func()
	}{
		"Bound over a parent that cannot end": {1, func() {
			b := bounded.New(ctx, time.Second)
			_ = b.Err()
			b.Stop()
		}},
		"Bound over a parent that can end": {1, func() {
			b := bounded.New(t.Context(), time.Second)
			_, _, _ = b.Err(), b.Value(key("k")), bounded.Cancelled(b)
			b.Stop()
		}},
		"Start of an embedded one": {0, func() {
			b := &embedded[0]
			embedded = embedded[1:]
			b.Start(ctx, time.Now().Add(time.Second))
			_ = b.Err()
			b.Stop()
		}},
	} {
		if got := testing.AllocsPerRun(100, tt.f); got > tt.want {
			t.Errorf("%s: %v allocations, want %v", name, got, tt.want)
		}
	}
}

func TestCancelled(t *testing.T) {
	t.Parallel()
	over := stopped(t, bounded.New(t.Context(), time.Hour))
	for name, tt := range map[string]struct {
		ctx  context.Context
		want <-chan struct{}
	}{
		"endless":                  {endless(t), nil},
		"cancellable":              {t.Context(), t.Context().Done()},
		"bounded over endless":     {stopped(t, bounded.New(endless(t), time.Hour)), nil},
		"bounded over cancellable": {over, t.Context().Done()},
		"bounded over bounded":     {stopped(t, bounded.New(over, time.Hour)), over.Done()},
	} {
		check.Equal(t, name, bounded.Cancelled(tt.ctx), tt.want)
	}
}

// A child of a Context over a cancellable parent ends with the parent, without a goroutine.
func TestBoundIsACheapParent(t *testing.T) {
	check.InFakeTime(t, func(t *testing.T) {
		parent, cancel := context.WithCancel(t.Context())
		b := bounded.New(parent, time.Hour)
		defer b.Stop()
		child, stop := context.WithCancel(b)
		defer stop()
		cancel()
		wantEnd(child, t, "child", context.Canceled) // at once: no goroutine had to run
	})
}

func TestBoundAtOnce(t *testing.T) {
	t.Parallel()
	for i := range 200 {
		parent := endless(t)
		if i%2 == 0 {
			parent = t.Context()
		}
		b := bounded.New(parent, time.Millisecond)
		var wg sync.WaitGroup
		for _, f := range []func(){b.Stop, func() { <-b.Done() }, func() { _ = b.Err() }, b.Stop, func() { <-b.Done() }} {
			wg.Go(f)
		}
		wg.Wait()
		if b.Err() == nil || !check.Closed(b.Done()) {
			t.Fatalf("Err %v, Done closed: %v", b.Err(), check.Closed(b.Done()))
		}
	}
}

// parent is a cancellable context. Its children learn of the end later.
type parent struct {
	context.Context
	done chan struct{}
	over atomic.Bool
}

func (p *parent) Done() <-chan struct{} { return p.done }

func (p *parent) Err() error {
	if p.over.Load() {
		return context.Canceled
	}
	return nil
}

// Once Cancelled is closed, Err returns an error, whoever has called Done before.
func TestCancelledHasAnError(t *testing.T) {
	t.Parallel()
	for range 100 {
		p := &parent{Context: t.Context(), done: make(chan struct{})}
		b := bounded.New(p, time.Hour)
		done := b.Done()
		p.over.Store(true)
		close(p.done)
		<-bounded.Cancelled(b)
		check.Is(t, b.Err(), context.Canceled)
		<-done
		b.Stop()
	}
}
