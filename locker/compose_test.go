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
	lock.Hold().Wrap(func(l lease.Lease) lease.Lease { return transparent{transparent{l}} })
	check("behind middleware", "second")
	lock.Hold().Wrap(func(l lease.Lease) lease.Lease { return opaque{l} })
	check("behind what does not unwrap", "second")
}

// TestDisown checks that a Handle either keeps a hold from being continued by another Lock, or
// names no hold.
func TestDisown(t *testing.T) {
	t.Parallel()
	for _, named := range []bool{false, true} { // the Handle was asked for before
		//realtime:ok no time passes
		lock := locker.NewLock(t.Context(), lease.Grant{Name: "a", Token: "token", TTL: time.Second}, nil)
		if named {
			lock.Handle()
		}
		disowned := lock.Hold().Disown()
		if token := lock.Handle().Grant().Token; disowned == named || (token == "token") != named {
			t.Errorf("with a Handle before: %v, Disown: %v; the token of the Handle is %q", named, disowned, token)
		}
	}
}
