package lease_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker/lease"
)

func TestWaiting(t *testing.T) {
	t.Parallel()
	if w, ok := lease.WaitingFrom(t.Context()); ok {
		t.Errorf("nobody waits, got %+v", w)
	}
	waiting := lease.Waiting{ID: lease.NewToken(), Since: time.Now(), Subscribed: true}
	derived, cancel := context.WithCancel(lease.WithWaiting(t.Context(), waiting))
	cancel()
	if got, ok := lease.WaitingFrom(derived); !ok || got != waiting {
		t.Errorf("got %+v, want %+v", got, waiting)
	}
}

func TestWithoutWaiting(t *testing.T) {
	t.Parallel()
	ctx := lease.WithWaiting(t.Context(), lease.Waiting{Since: time.Now()})
	if _, waits := lease.WaitingFrom(lease.WithoutWaiting(ctx)); waits {
		t.Error("somebody waits in a ctx without")
	}
	if lease.WithoutWaiting(t.Context()) != t.Context() {
		t.Error("a ctx in which nobody waits was wrapped")
	}
}

// wrapper is a Lease that wraps another one.
type wrapper struct{ inner lease.Lease }

func (*wrapper) Do(context.Context, lease.Op) (lease.Term, error) {
	return lease.Term{}, errors.ErrUnsupported
}
func (w *wrapper) Unwrap() lease.Lease { return w.inner }

// tokened is a Lease that has a token.
type tokened struct{ wrapper }

func (*tokened) Token() string { return "token" }

func TestFind(t *testing.T) {
	t.Parallel()
	itself, first, second := &wrapper{}, &wrapper{}, &wrapper{}
	itself.inner, first.inner, second.inner = itself, second, first
	type test struct {
		l     lease.Lease
		found bool
	}
	check.Each(t, map[string]test{
		"nil":                        {nil, false},
		"itself":                     {&tokened{}, true},
		"behind two wrappers":        {&wrapper{&wrapper{&tokened{}}}, true},
		"a wrapper of nothing":       {&wrapper{}, false},
		"a wrapper of itself":        {itself, false},
		"two that wrap each other":   {first, false},
		"before a wrapper of itself": {&wrapper{&tokened{wrapper{itself}}}, true},
	}, func(t *testing.T, tt test) {
		if _, ok := lease.Find[lease.Tokened](tt.l); ok != tt.found {
			t.Errorf("found: %v, want %v", ok, tt.found)
		}
	})
}
