package lockertest_test

import (
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/locker/lockertest"
)

func TestRaiseFence(t *testing.T) {
	t.Parallel()
	l := lockertest.New()
	var inner lease.Lease
	grab := func(lock *locker.Lock) *locker.Lock {
		lock.Hold().Wrap(func(in lease.Lease) lease.Lease { inner = in; return in })
		return lock
	}
	lock := grab(acquire(t, l, locker.Request{Name: "a", Fenced: true}))
	raise := func(to int64) (int64, error) {
		result, err := inner.Do(t.Context(), lease.Op{Kind: lease.OpRaiseFence, Fence: to})
		return result.Fence, err
	}
	for _, tt := range []struct{ to, want int64 }{{7, 7}, {5, 7}} {
		if got, err := raise(tt.to); err != nil || got != tt.want {
			t.Errorf("raise to %d: %d, %v; want %d", tt.to, got, err, tt.want)
		}
	}
	release(t, lock)
	check.Error(t, "raise after the release", check.ErrOf(raise(9)), locker.ErrNotHeld)
	check.Equal(t, "fence after one of 7", acquire(t, l, locker.Request{Name: "a", Fenced: true}).Fence(), 8)
	grab(acquire(t, l, locker.Request{Name: "b"}))
	check.Error(t, "raise where there is no fence", check.ErrOf(raise(2)), errors.ErrUnsupported)
	check.Error(t, "unknown operation", check.ErrOf(inner.Do(t.Context(), lease.Op{Kind: 99})), errors.ErrUnsupported)
}

func TestWholeMilliseconds(t *testing.T) {
	check.InFakeTime(t, func(t *testing.T) {
		lock := acquire(t, lockertest.New(), locker.Request{Name: "a", TTL: 3999 * time.Microsecond})
		check.Equal(t, "TTL", lock.TTL(), 3*time.Millisecond)
		if err := lock.Renew(t.Context(), time.Hour+time.Microsecond); err != nil || time.Until(lock.Deadline()) != time.Hour {
			t.Errorf("renewed until %v from now, %v; want 1h", time.Until(lock.Deadline()), err)
		}
	})
}
