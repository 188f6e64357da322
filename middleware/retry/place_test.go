package retry_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/middleware/retry"
)

// A waiter that comes while the process gives up its place tries again once that is done: the place
// that was given up may be its own.
func TestWaiterThatComesWhileThePlaceIsGivenUp(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		s.queue, s.lease = true, time.Hour
		l := wrap(t, s, retry.Config{})
		lock := locker.Must(l.Acquire(t.Context(), locker.Request{Name: name}))
		ctx, cancel := context.WithCancel(t.Context())
		s.begin(ctx, l, locker.Request{})
		elapse(10 * ms)
		s.releasing = func() {
			s.releasing = func() { elapse(100 * ms) } // the second release is late
			cancel()
			synctest.Wait()
		}
		match(t, lock.Release(t.Context()), nil, nil)
		synctest.Wait()
		s.hold()
		ctx, cancel = context.WithCancel(t.Context())
		defer cancel()
		s.begin(ctx, l, locker.Request{})
		elapse(50 * ms)
		s.mute = true // the second release frees nothing
		before := len(s.times())
		elapse(100 * ms)
		if n := len(s.times()) - before; n != 1 {
			t.Errorf("%d attempts after the place was given up, want 1", n)
		}
	})
}

// If the only waiter gives up during its first attempt after a release that counted on it, the
// first waiter at the server is woken.
func TestPlaceOfAnAttemptThatIsCutOff(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		s.queue = true
		l := wrap(t, s, retry.Config{})
		lock := locker.Must(l.Acquire(t.Context(), locker.Request{Name: name}))
		ctx, cancel := context.WithCancel(t.Context())
		second := s.begin(ctx, l, locker.Request{})
		elapse(10 * ms)
		s.latency = 10 * ms
		if err := lock.Release(t.Context()); err != nil {
			t.Error(err)
		}
		elapse(ms)
		cancel()
		synctest.Wait()
		if !errors.Is(second.err, context.Canceled) {
			t.Errorf("the waiter that gave up: %v", second.err)
		}
		if len(s.releases) != 2 || s.releases[1].Next != lease.NextOther {
			t.Errorf("the releases were %+v, want one for a waiter here, and one for others", s.releases)
		}
	})
}
