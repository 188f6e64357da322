package retry_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/locker"
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
