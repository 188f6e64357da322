package locker_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
)

// What strategies that are made of other Lockers need.

func TestWithoutTrace(t *testing.T) {
	t.Parallel()
	type key struct{}
	plain := context.WithValue(t.Context(), key{}, "value")
	if locker.WithoutTrace(plain) != plain {
		t.Error("a ctx without a Trace is made another")
	}
	told := 0
	traced := locker.WithTrace(plain, &locker.Trace{Acquired: func(context.Context, locker.AcquiredInfo) { told++ }})
	masked := locker.WithoutTrace(traced)
	if locker.TraceFrom(masked) != nil || masked.Value(key{}) != "value" {
		t.Errorf("Trace %v, value %v", locker.TraceFrom(masked), masked.Value(key{}))
	}
	locker.NewLock(masked, locker.Grant{Name: "a", Token: secret}, &lease{})
	if told != 0 {
		t.Error("a lock reported to a Trace that was taken away")
	}
	other := &locker.Trace{}
	if got := locker.TraceFrom(locker.WithTrace(masked, other)); got != other {
		t.Error("a Trace after that is not the one that was given")
	}
}

func TestDetach(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		type key struct{}
		parent, cancel := context.WithCancel(context.WithValue(t.Context(), key{}, "value"))
		cancel()
		ctx, stop := locker.Detach(parent, time.Second)
		defer stop()
		if ctx.Err() != nil || ctx.Value(key{}) != "value" {
			t.Errorf("error %v, value %v", ctx.Err(), ctx.Value(key{}))
		}
		if driver.Cancellable(ctx) {
			t.Error("drivers take it for one that somebody cancels")
		}
		if end, ok := ctx.Deadline(); !ok || time.Until(end) != time.Second {
			t.Errorf("its deadline is in %v", time.Until(end))
		}
		start := time.Now()
		<-ctx.Done()
		if took := time.Since(start); took != time.Second || !errors.Is(ctx.Err(), context.DeadlineExceeded) {
			t.Errorf("it ended after %v: %v", took, ctx.Err())
		}
		stopped, stop := locker.Detach(parent, time.Hour)
		stop()
		<-stopped.Done()
		if !errors.Is(stopped.Err(), context.Canceled) {
			t.Errorf("stopped: %v", stopped.Err())
		}
	})
}

func TestPassing(t *testing.T) {
	t.Parallel()
	for err, want := range map[error]bool{
		errors.New("connection refused"): true, locker.ErrUnknownOutcome: true, locker.ErrClosed: false, locker.ErrInvalid: false,
		errors.ErrUnsupported: false, driver.ErrPermanent: false,
	} {
		if locker.Passing(err) != want {
			t.Errorf("%v passes: %v, want %v", err, !want, want)
		}
	}
}

// tokened is a lease whose token changes.
type tokened struct {
	lease
	token string
}

func (l *tokened) Token() string { return l.token }

// wrapper is middleware that leaves renewals alone.
type wrapper struct{ locker.Lease }

func (w wrapper) Unwrap() locker.Lease { return w.Lease }

// hiding is middleware that shows nothing of what it wraps.
type hiding struct{ locker.Lease }

func TestHandleAsksTheLease(t *testing.T) {
	t.Parallel()
	inner := &tokened{token: "first"}
	lock := locker.NewLock(t.Context(), locker.Grant{Name: "a", Token: "granted", TTL: time.Minute, Fence: 7}, inner)
	check := func(when, want string) {
		t.Helper()
		if g := lock.Handle().Grant(); g.Token != want || g.Name != "a" || g.Fence != 7 {
			t.Errorf("%s the handle is of %q with token %q, want %q", when, g.Name, g.Token, want)
		}
	}
	check("at first", "first")
	inner.token = "second"
	check("after a change", "second")
	locker.WrapLease(lock, func(l locker.Lease) locker.Lease { return wrapper{wrapper{l}} })
	check("behind middleware", "second")
	locker.WrapLease(lock, func(l locker.Lease) locker.Lease { return hiding{l} })
	check("behind what does not unwrap", "second")
}
