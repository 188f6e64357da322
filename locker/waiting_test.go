package locker_test

import (
	"context"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/locker"
)

func TestWaiting(t *testing.T) {
	t.Parallel()
	if w, ok := locker.WaitingFrom(t.Context()); ok {
		t.Errorf("nobody waits, got %+v", w)
	}
	since := time.Now()
	one, two := locker.WithWaiting(t.Context(), since), locker.WithWaiting(t.Context(), since)
	a, _ := locker.WaitingFrom(one)
	derived, cancel := context.WithCancel(one)
	cancel()
	again, ok := locker.WaitingFrom(derived)
	b, _ := locker.WaitingFrom(two)
	if !ok || a != again || !a.Since.Equal(since) || len(a.ID) != locker.TokenLen || a.ID == b.ID {
		t.Errorf("got %+v, %+v and %+v", a, again, b)
	}
}

func TestWithoutWaiting(t *testing.T) {
	t.Parallel()
	ctx := locker.WithWaiting(t.Context(), time.Now())
	if _, waits := locker.WaitingFrom(locker.WithoutWaiting(ctx)); waits {
		t.Error("somebody waits in a ctx without")
	}
	if locker.WithoutWaiting(t.Context()) != t.Context() {
		t.Error("a ctx in which nobody waits was wrapped")
	}
}
