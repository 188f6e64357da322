package locker_test

import (
	"errors"
	"testing"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lockertest"
)

// funcOf hides what it wraps: the hold is resumed first.
func funcOf(l locker.Locker) locker.Locker { return locker.Func(l.Acquire) }

func TestReleaseHandle(t *testing.T) {
	t.Parallel()
	check.Each(t, map[string]func(locker.Locker) locker.Locker{
		"itself":           func(l locker.Locker) locker.Locker { return l },
		"behind a wrap":    func(l locker.Locker) locker.Locker { return wrapping{l} },
		"by way of Resume": funcOf,
	}, func(t *testing.T, around func(locker.Locker) locker.Locker) {
		memory := lockertest.New()
		l := around(memory)
		lock := locker.Must(l.Acquire(t.Context(), locker.Request{Name: "a"}))
		check.Error(t, "ReleaseHandle", locker.ReleaseHandle(t.Context(), l, lock.Handle()))
		if state, _ := memory.Inspect(t.Context(), "a"); state.Held {
			t.Error("it is still held")
		}
		check.Error(t, "Renew", lock.Renew(t.Context(), 0), locker.ErrLost)

		next := locker.Must(l.Acquire(t.Context(), locker.Request{Name: "a"}))
		err := locker.ReleaseHandle(t.Context(), l, lock.Handle())
		check.Error(t, "ReleaseHandle of a hold that has ended", err, locker.ErrNotHeld)
		wantNotError(t, "ReleaseHandle of a hold that has ended", err, locker.ErrLost)
		if oe, ok := errors.AsType[*locker.OpError](err); !ok || oe.Name != "a" {
			t.Errorf("%v, want an OpError of a", err)
		}
		check.Error(t, "Release of the next holder", next.Release(t.Context()))
	})
}
