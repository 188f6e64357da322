package locker_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lockertest"
)

// A hold, its end, and a loop that is left.
func TestWatch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		memory := lockertest.New()
		l := unwrapping{funcOf(memory), memory}
		lock := locker.Must(l.Acquire(t.Context(), locker.Request{Name: "a", Note: "why", TTL: time.Minute}))
		start, seen := time.Now(), 0
		for state, err := range locker.Watch(t.Context(), l, "a", 0) {
			wantError(t, "Watch", err)
			if seen++; seen == 1 {
				if !state.Held || state.Note != "why" {
					t.Errorf("yields %+v", state)
				}
				wantError(t, "Release", lock.Release(t.Context()))
				continue
			}
			if state != (locker.State{}) {
				t.Errorf("yields %+v after the release", state)
			}
			break
		}
		if took := time.Since(start); took != time.Second {
			t.Errorf("the release was seen after %v, want 1s", took)
		}
	})
}

// It ends with its ctx, also while nothing changes, and yields nothing then.
func TestWatchEndsWithCtx(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		yields := 0
		for _, err := range locker.Watch(ctx, lockertest.New(), "a", time.Minute) {
			wantError(t, "Watch", err)
			yields++
		}
		if yields != 1 {
			t.Errorf("it yields %d times", yields)
		}
	})
}

func TestWatchRefuses(t *testing.T) {
	t.Parallel()
	l := lockertest.New()
	for what, tc := range map[string]struct {
		ctx      context.Context
		l        locker.Locker
		name     string
		interval time.Duration
		want     error
	}{
		"no ctx":              {nil, l, "a", 0, locker.ErrInvalid},
		"no Locker":           {t.Context(), nil, "a", 0, locker.ErrInvalid},
		"no name":             {t.Context(), l, "", 0, locker.ErrInvalid},
		"an interval below 0": {t.Context(), l, "a", -1, locker.ErrInvalid},
		"no Inspector":        {t.Context(), funcOf(l), "a", 0, errors.ErrUnsupported},
	} {
		yields := 0
		for _, err := range locker.Watch(tc.ctx, tc.l, tc.name, tc.interval) {
			yields++
			wantError(t, what, err, tc.want)
			if _, ok := errors.AsType[*locker.OpError](err); !ok {
				t.Errorf("%s: %v, want an OpError", what, err)
			}
		}
		if yields != 1 {
			t.Errorf("%s: it yields %d times", what, yields)
		}
	}
}
