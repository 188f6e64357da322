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
