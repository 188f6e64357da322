package lease_test

import (
	"context"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/locker/lease"
)

func TestWaiting(t *testing.T) {
	t.Parallel()
	if w, ok := lease.WaitingFrom(t.Context()); ok {
		t.Errorf("nobody waits, got %+v", w)
	}
	since := time.Now()
	one, two := lease.WithWaiting(t.Context(), since), lease.WithWaiting(t.Context(), since)
	a, _ := lease.WaitingFrom(one)
	derived, cancel := context.WithCancel(one)
	cancel()
	again, ok := lease.WaitingFrom(derived)
	b, _ := lease.WaitingFrom(two)
	if !ok || a != again || !a.Since.Equal(since) || len(a.ID) != lease.TokenLen || a.ID == b.ID {
		t.Errorf("got %+v, %+v and %+v", a, again, b)
	}
}

func TestWithoutWaiting(t *testing.T) {
	t.Parallel()
	ctx := lease.WithWaiting(t.Context(), time.Now())
	if _, waits := lease.WaitingFrom(lease.WithoutWaiting(ctx)); waits {
		t.Error("somebody waits in a ctx without")
	}
	if lease.WithoutWaiting(t.Context()) != t.Context() {
		t.Error("a ctx in which nobody waits was wrapped")
	}
}
