package adapter

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/bounded"
	"github.com/holdfast-go/holdfast/internal/check"
)

// Deadlines close to each other share a channel. It is closed after the deadline, at most grain
// later, and Err returns an error no earlier.
func TestExpiriesShare(t *testing.T) {
	t.Parallel()
	const after = 3 * time.Second
	type test struct {
		later  time.Duration // than the first deadline
		shared bool
	}
	check.EachInFakeTime(t, map[string]test{
		"the same":     {0, true},
		"a bit later":  {grain, true},
		"later":        {grain + 1, false},
		"a bit sooner": {-1, false},
	}, func(t *testing.T, c test) {
		var e expiries
		start := time.Now()
		share := func(after time.Duration) context.Context {
			ctx := e.share(until(start.Add(after)), start)
			t.Cleanup(func() { unshare(ctx) })
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
		if late := time.Since(start) - (after + c.later); late < 0 || late > grain {
			t.Errorf("closed %v after the deadline", late)
		}
		if err := other.Err(); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("at the end Err is %v", err)
		}
		<-first.Done()
	})
}

// until returns a context that ends at its deadline alone.
func until(deadline time.Time) context.Context {
	b := new(bounded.Context)
	b.Start(context.Background(), deadline)
	return b
}

// A context is left as it is if it can be cancelled, has a near deadline, or has none.
func TestExpiriesLeaveAlone(t *testing.T) {
	t.Parallel()
	var e expiries
	now := time.Now()
	cancellable, cancel := context.WithDeadline(t.Context(), now.Add(time.Hour))
	defer cancel()
	short := bounded.New(cancellable, time.Minute)
	defer short.Stop()
	for name, ctx := range map[string]context.Context{
		"cancellable": cancellable, "bounded": short, "near": until(now.Add(time.Second)), "endless": context.Background(),
	} {
		if got := e.share(ctx, now); got != ctx {
			t.Errorf("%s: got another context", name)
		}
		unshare(ctx)
	}
}

// A context ends even if all contexts that shared its Done have ended before.
func TestExpiriesLastLeaves(t *testing.T) {
	check.InFakeTime(t, func(t *testing.T) {
		var e expiries
		now := time.Now()
		first := e.share(until(now.Add(2*time.Second)), now)
		unshare(first)
		second := e.share(until(now.Add(2*time.Second)), now)
		defer unshare(second)
		<-second.Done()
		check.Took(t, "the wait for Done", now, 2*time.Second+grain)
	})
}

// After Close no timer outlives the last use of a context, shared before or after Close.
func TestExpiriesClose(t *testing.T) {
	check.InFakeTime(t, func(t *testing.T) {
		var e expiries
		ctx := until(time.Now().Add(3 * time.Second))
		before := e.share(ctx, time.Now())
		e.close()
		after := e.share(ctx, time.Now())
		if before.Done() == after.Done() {
			t.Error("a context that was shared after Close shares the channel of one before")
		}
		for _, shared := range []context.Context{before, after} {
			unshare(shared)
		}
		time.Sleep(time.Minute) //nolint:forbidigo // fake time
		for _, shared := range []context.Context{before, after} {
			check.Error(t, "its timer was left", shared.Err())
		}
	})
}
