package locker_test

import (
	"context"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/locker/locktrace"
)

// What strategies that are made of other Lockers need.

func TestWithoutTrace(t *testing.T) {
	t.Parallel()
	type key struct{}
	plain := context.WithValue(t.Context(), key{}, "value")
	if locktrace.Without(plain) != plain {
		t.Error("a ctx without a Trace is made another")
	}
	told := 0
	traced := locktrace.With(plain, &locktrace.Trace{Acquired: func(context.Context, locktrace.AcquiredInfo) { told++ }})
	masked := locktrace.Without(traced)
	if locktrace.From(masked) != nil || masked.Value(key{}) != "value" {
		t.Errorf("Trace %v, value %v", locktrace.From(masked), masked.Value(key{}))
	}
	locker.NewLock(masked, lease.Grant{Name: "a", Token: secret}, &fakeLease{})
	if told != 0 {
		t.Error("a lock reported to a Trace that was taken away")
	}
	other := &locktrace.Trace{}
	if got := locktrace.From(locktrace.With(masked, other)); got != other {
		t.Error("a Trace after that is not the one that was given")
	}
}

// tokened is a lease whose token changes.
type tokened struct {
	fakeLease
	token string
}

func (l *tokened) Token() string { return l.token }

// wrapper is middleware that leaves renewals alone.
type wrapper struct{ lease.Lease }

func (w wrapper) Unwrap() lease.Lease { return w.Lease }

// hiding is middleware that shows nothing of what it wraps.
type hiding struct{ lease.Lease }

func TestHandleAsksTheLease(t *testing.T) {
	t.Parallel()
	inner := &tokened{token: "first"}
	lock := locker.NewLock(t.Context(), lease.Grant{Name: "a", Token: "granted", TTL: time.Minute, Fence: 7}, inner)
	check := func(when, want string) {
		t.Helper()
		if g := lock.Handle().Grant(); g.Token != want || g.Name != "a" || g.Fence != 7 {
			t.Errorf("%s the handle is of %q with token %q, want %q", when, g.Name, g.Token, want)
		}
	}
	check("at first", "first")
	inner.token = "second"
	check("after a change", "second")
	lock.Hold().Wrap(func(l lease.Lease) lease.Lease { return wrapper{wrapper{l}} })
	check("behind middleware", "second")
	lock.Hold().Wrap(func(l lease.Lease) lease.Lease { return hiding{l} })
	check("behind what does not unwrap", "second")
}
