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

// unwrapping is middleware through which the Locker below is found.
type unwrapping struct {
	locker.Locker
	inner locker.Locker
}

func (u unwrapping) Unwrap() locker.Locker { return u.inner }

// funcOf hides what it wraps: the hold is resumed first.
func funcOf(l locker.Locker) locker.Locker { return locker.Func(l.Acquire) }

func TestReleaseHandle(t *testing.T) {
	t.Parallel()
	for name, around := range map[string]func(locker.Locker) locker.Locker{
		"itself":           func(l locker.Locker) locker.Locker { return l },
		"behind a wrap":    func(l locker.Locker) locker.Locker { return unwrapping{funcOf(l), l} },
		"by way of Resume": funcOf,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			memory := lockertest.New()
			l := around(memory)
			lock := locker.Must(l.Acquire(t.Context(), locker.Request{Name: "a"}))
			wantError(t, "ReleaseHandle", locker.ReleaseHandle(t.Context(), l, lock.Handle()))
			if state, _ := memory.Inspect(t.Context(), "a"); state.Held {
				t.Error("it is still held")
			}
			wantError(t, "Renew", lock.Renew(t.Context(), 0), locker.ErrLost)

			next := locker.Must(l.Acquire(t.Context(), locker.Request{Name: "a"}))
			err := locker.ReleaseHandle(t.Context(), l, lock.Handle())
			wantError(t, "ReleaseHandle of a hold that has ended", err, locker.ErrNotHeld)
			wantNotError(t, "ReleaseHandle of a hold that has ended", err, locker.ErrLost)
			if oe, ok := errors.AsType[*locker.OpError](err); !ok || oe.Name != "a" {
				t.Errorf("%v, want an OpError of a", err)
			}
			wantError(t, "Release of the next holder", next.Release(t.Context()))
		})
	}
}

func TestReleaseHandleRefuses(t *testing.T) {
	t.Parallel()
	l := lockertest.New()
	h := locker.Must(l.Acquire(t.Context(), locker.Request{Name: "a"})).Handle()
	for name, err := range map[string]error{
		"no ctx":      locker.ReleaseHandle(nil, l, h), //nolint:staticcheck // nil on purpose
		"no locker":   locker.ReleaseHandle(t.Context(), nil, h),
		"zero handle": locker.ReleaseHandle(t.Context(), l, locker.Handle{}),
	} {
		wantInvalid(t, name, err)
		wantOp(t, err, "release")
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	l.FailRelease(locker.ErrUnknownOutcome)
	wantError(t, "a release that fails", locker.ReleaseHandle(t.Context(), l, h), locker.ErrUnknownOutcome)
	wantError(t, "under a cancelled ctx", locker.ReleaseHandle(cancelled, l, h))
}

// A hold with a MinHold that is released by its Handle keeps the name taken.
func TestReleaseHandleKeepsMinHold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := lockertest.New()
		lock := locker.Must(l.Acquire(t.Context(), locker.Request{Name: "a", MinHold: 2 * time.Second}))
		advance(time.Second)
		h := lock.Handle()
		wantError(t, "ReleaseHandle", locker.ReleaseHandle(t.Context(), l, h))
		wantError(t, "a second ReleaseHandle", locker.ReleaseHandle(t.Context(), l, h), locker.ErrNotHeld)
		advance(time.Second - 1)
		_, err := l.Acquire(t.Context(), locker.Request{Name: "a"})
		wantError(t, "Acquire before MinHold has passed", err, locker.ErrNotAcquired)
		advance(1)
		_, err = l.Acquire(t.Context(), locker.Request{Name: "a"})
		wantError(t, "Acquire after MinHold", err)
	})
}
