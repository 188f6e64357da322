package locker_test

import (
	"context"
	"errors"
	"testing"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lockertest"
)

// wrapping is a Locker that wraps another one.
type wrapping struct{ locker.Locker }

func (w wrapping) Unwrap() locker.Locker { return w.Locker }

// cycle is a Locker whose Unwrap leads back to it.
type cycle struct {
	locker.Locker
	next *cycle
}

func (c *cycle) Unwrap() locker.Locker { return c.next }

// newCycle returns the first of n Lockers that wrap each other.
func newCycle(n int) *cycle {
	first := new(cycle)
	last := first
	for range n - 1 {
		last.next = new(cycle)
		last = last.next
	}
	last.next = first
	return first
}

// broken is an Inspector whose server is away.
type broken struct{ locker.Locker }

var errAway = errors.New("server away")

func (broken) Inspect(context.Context, string) (locker.State, error) {
	return locker.State{}, errAway
}

func TestInspect(t *testing.T) {
	t.Parallel()
	l := lockertest.New()
	if _, err := l.Acquire(t.Context(), locker.Request{Name: "a", Owner: "me"}); err != nil {
		t.Fatal(err)
	}
	var none context.Context
	tests := []struct {
		what string
		ctx  context.Context //nolint:containedctx // of the table
		l    locker.Locker
		name string
		err  error // nil: held by me
	}{
		{"a strategy", t.Context(), l, "a", nil},
		{"behind middleware", t.Context(), wrapping{wrapping{l}}, "a", nil},
		{"a failing strategy", t.Context(), wrapping{broken{l}}, "a", errAway},
		{"behind a Func", t.Context(), locker.Func(l.Acquire), "a", errors.ErrUnsupported},
		{"behind a wrapper of nothing", t.Context(), wrapping{}, "a", errors.ErrUnsupported},
		{"behind a wrapper of itself", t.Context(), newCycle(1), "a", errors.ErrUnsupported},
		{"behind two that wrap each other", t.Context(), newCycle(2), "a", errors.ErrUnsupported},
		{"no name", t.Context(), l, "", locker.ErrInvalid},
		{"no ctx", none, l, "a", locker.ErrInvalid},
		{"no Locker", t.Context(), nil, "a", locker.ErrInvalid},
	}
	for _, tt := range tests {
		t.Run(tt.what, func(t *testing.T) {
			t.Parallel()
			state, err := locker.Inspect(tt.ctx, tt.l, tt.name)
			if tt.err == nil {
				if err != nil || !state.Held || state.Owner != "me" {
					t.Errorf("%+v, %v", state, err)
				}
				return
			}
			var op *locker.OpError
			if !errors.Is(err, tt.err) || !errors.As(err, &op) || op.Op != "inspect" || op.Name != tt.name {
				t.Errorf("error %v, want %v of the inspection of %q", err, tt.err, tt.name)
			}
		})
	}
}
