package adapter_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/driver/adapter"
)

// Deadlines close to each other share a channel. It is closed after the deadline, at most Grain
// later, and no earlier does Err return an error.
func TestExpiriesShare(t *testing.T) {
	t.Parallel()
	const after = 3 * time.Second
	type test struct {
		later  time.Duration // than the first deadline
		shared bool
	}
	check.EachInFakeTime(t, map[string]test{
		"the same":     {0, true},
		"a bit later":  {adapter.Grain, true},
		"later":        {adapter.Grain + 1, false},
		"a bit sooner": {-1, false},
	}, func(t *testing.T, c test) {
		var e adapter.Expiries
		start := time.Now()
		share := func(after time.Duration) context.Context {
			ctx := e.Share(dated{start.Add(after)}, start)
			t.Cleanup(func() { adapter.Unshare(ctx) })
			return ctx
		}
		first, other := share(after), share(after+c.later)
		if shared := first.Done() == other.Done(); shared != c.shared {
			t.Errorf("shared: %v, want %v", shared, c.shared)
		}
		if err := other.Err(); err != nil {
			t.Errorf("at first Err is %v", err)
		}
		<-other.Done()
		if late := time.Since(start) - (after + c.later); late < 0 || late > adapter.Grain {
			t.Errorf("closed %v after the deadline", late)
		}
		if err := other.Err(); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("at the end Err is %v", err)
		}
		<-first.Done()
	})
}

// dated is a context that ends at its deadline alone.
type dated struct{ deadline time.Time }

func (d dated) Deadline() (time.Time, bool) { return d.deadline, true }
func (dated) Done() <-chan struct{}         { return nil }
func (dated) Err() error                    { return nil }
func (dated) Value(any) any                 { return nil }

// A context that can be cancelled, whose deadline is near, or that has none, is left as it is.
func TestExpiriesLeaveAlone(t *testing.T) {
	t.Parallel()
	var e adapter.Expiries
	now := time.Now()
	cancellable, cancel := context.WithDeadline(t.Context(), now.Add(time.Hour))
	defer cancel()
	bounded := driver.Bound(cancellable, time.Minute)
	defer bounded.Stop()
	for name, ctx := range map[string]context.Context{
		"cancellable": cancellable, "bounded": bounded, "near": dated{now.Add(time.Second)}, "endless": context.Background(),
	} {
		if got := e.Share(ctx, now); got != ctx {
			t.Errorf("%s: got another context", name)
		}
		adapter.Unshare(ctx)
	}
}

// A context ends also if all that shared its Done before are over.
func TestExpiriesLastLeaves(t *testing.T) {
	check.InFakeTime(t, func(t *testing.T) {
		var e adapter.Expiries
		now := time.Now()
		first := e.Share(dated{now.Add(2 * time.Second)}, now)
		adapter.Unshare(first)
		second := e.Share(dated{now.Add(2 * time.Second)}, now)
		defer adapter.Unshare(second)
		<-second.Done()
		check.Took(t, "the wait for Done", now, 2*time.Second+adapter.Grain)
	})
}

// After Close no timer is left once the last context is not used any more, whether it was shared
// before or after.
func TestExpiriesClose(t *testing.T) {
	check.InFakeTime(t, func(t *testing.T) {
		var e adapter.Expiries
		ctx := dated{time.Now().Add(3 * time.Second)}
		before := e.Share(ctx, time.Now())
		e.Close()
		after := e.Share(ctx, time.Now())
		if before.Done() == after.Done() {
			t.Error("a context that was shared after Close shares the channel of one before")
		}
		for _, shared := range []context.Context{before, after} {
			adapter.Unshare(shared)
		}
		time.Sleep(time.Minute) //nolint:forbidigo // fake time
		for _, shared := range []context.Context{before, after} {
			check.Error(t, "its timer was left", shared.Err())
		}
	})
}
