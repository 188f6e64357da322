package retry_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/middleware/retry"
)

// A release or a downgrade in this process wakes the head of the queue without pub/sub. Other
// operations go to the strategy only.
func TestLocalRelease(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		s.noPubSub = true
		l := wrap(t, s, retry.Config{Policy: constant(time.Hour)})
		lock := locker.Must(l.Acquire(t.Context(), locker.Request{Name: name}))
		second := s.begin(t.Context(), l, locker.Request{})
		elapse(time.Second)
		if err := lock.Renew(t.Context(), time.Minute); err != nil || lock.Deadline() != (time.Time{}) || lock.Fence() != 7 {
			t.Errorf("Renew: %v, Deadline %v, Fence %d", err, lock.Deadline(), lock.Fence())
		}
		check.Is(t, lock.Upgrade(t.Context()), errors.ErrUnsupported)
		synctest.Wait()
		check.EqualSlices(t, "attempts", s.times(), []time.Duration{0, 0, time.Second}) // the conversion may have let another in
		elapse(time.Second)
		check.OK(t, lock.Release(t.Context()))
		second.wantLock(t, 2*time.Second)
		check.EqualSlices(t, "attempts", s.times(), []time.Duration{0, 0, time.Second, 2 * time.Second})
	})
}

// The release of a lock from NoWait or Resume wakes the head of the queue too.
func TestLocalReleaseOfWhatDidNotQueue(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		s.noPubSub = true
		l := wrap(t, s, retry.Config{Policy: constant(time.Hour)})
		for _, req := range []locker.Request{
			{Name: name, NoWait: true},
			{Name: name, Resume: locker.NewLock(context.Background(), lease.HoldInfo{Name: name, Token: "t"}, nil).Handle()},
		} {
			lock := locker.Must(l.Acquire(t.Context(), req))
			waiting := s.begin(t.Context(), l, locker.Request{})
			check.OK(t, lock.Release(t.Context()))
			waiting.wantLock(t, 0)
			check.OK(t, waiting.lock.Release(t.Context()))
		}
	})
}
