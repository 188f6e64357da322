package locker_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lockertest"
)

func TestBreak(t *testing.T) {
	t.Parallel()
	memory := lockertest.New()
	l := unwrapping{funcOf(memory), memory}
	shared := locker.Request{Name: "a", Mode: locker.Shared, Fenced: true, Note: "n", TTL: time.Minute}
	first := locker.Must(l.Acquire(t.Context(), shared))
	second := locker.Must(l.Acquire(t.Context(), shared))
	state, err := locker.Break(t.Context(), l, "a")
	wantError(t, "Break", err)
	if !state.Held || state.Holds != 2 || state.Note != "n" || state.Mode != locker.Shared || state.Fence != second.Fence() {
		t.Errorf("Break ended %+v", state)
	}
	wantError(t, "Renew of the first", first.Renew(t.Context(), 0), locker.ErrLost)
	wantError(t, "Renew of the second", second.Renew(t.Context(), 0), locker.ErrLost)
	_, err = locker.Break(t.Context(), l, "a")
	wantError(t, "a second Break", err, locker.ErrNotHeld)
	wantOp(t, err, "break")

	third := locker.Must(l.Acquire(t.Context(), locker.Request{Name: "a", MinHold: time.Minute}))
	wantError(t, "Release", third.Release(t.Context()))
	state, err = locker.Break(t.Context(), l, "a")
	wantError(t, "Break of a minimum hold", err)
	if !state.Held || state.Holds != 0 {
		t.Errorf("Break ended %+v", state)
	}
}

// Holds that came after FindHolds stay.
func TestBreakLeavesLaterHolds(t *testing.T) {
	t.Parallel()
	l := lockertest.New()
	old := locker.Must(l.Acquire(t.Context(), locker.Request{Name: "a"}))
	_, end, err := l.FindHolds(t.Context(), "a")
	wantError(t, "FindHolds", err)
	wantError(t, "Release", old.Release(t.Context()))
	next := locker.Must(l.Acquire(t.Context(), locker.Request{Name: "a"}))
	wantError(t, "the end of what has ended", end(t.Context()), locker.ErrNotHeld)
	wantError(t, "Renew", next.Renew(t.Context(), 0))
}

func TestBreakRefuses(t *testing.T) {
	t.Parallel()
	l := lockertest.New()
	for name, tc := range map[string]struct {
		ctx  context.Context
		l    locker.Locker
		lock string
		want error
	}{
		"no ctx":     {nil, l, "a", locker.ErrInvalid},
		"no locker":  {t.Context(), nil, "a", locker.ErrInvalid},
		"no name":    {t.Context(), l, "", locker.ErrInvalid},
		"no Breaker": {t.Context(), funcOf(l), "a", errors.ErrUnsupported},
	} {
		_, err := locker.Break(tc.ctx, tc.l, tc.lock)
		wantError(t, name, err, tc.want)
		wantOp(t, err, "break")
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := locker.Break(cancelled, l, "a")
	wantError(t, "a cancelled ctx", err, context.Canceled)
}
