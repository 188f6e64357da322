package retry_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/middleware/retry"
)

// One slow attempt, as the first dial may be, does not end the polling.
func TestPollsAfterASlowFirstAttempt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		s.noPubSub = true
		s.answer = func(n int, _ locker.Request) error {
			if n == 0 {
				elapse(2 * time.Second)
			}
			return nil
		}
		other := s.hold()
		l := wrap(t, s, retry.Config{})
		time.AfterFunc(2100*time.Millisecond, func() { s.free(other) })
		lock := locker.Must(l.Acquire(t.Context(), locker.Request{Name: name, MaxWait: 5 * time.Second}))
		check.OK(t, lock.Release(t.Context()))
	})
}

// A shared waiter behind the leader leaves it the message that comes during the leader's attempt: its own
// attempt may be cut off.
func TestMessageIsLeftToTheLeader(t *testing.T) {
	bubbles(t, map[string]bool{"in one line": false, "in two lines": true}, func(t *testing.T, s *server, ordered bool) {
		s.ordered = ordered
		l := wrap(t, s, retry.Config{Policy: constant(time.Minute)})
		other := s.hold()
		first := s.begin(t.Context(), l, locker.Request{Mode: locker.Shared})
		leader := s.begin(t.Context(), l, locker.Request{Mode: locker.Shared, Note: "leader"})
		check.Advance(100 * ms)
		refused := false
		s.answer = func(_ int, req locker.Request) error {
			switch {
			case req.Note == "cut off":
				elapse(10 * ms)
				return errUnknown
			case req.Note == "leader" && !refused: // by a writer that has the lock for a moment
				refused = true
				writer := s.hold()
				time.AfterFunc(ms, func() { s.free(writer) })
				elapse(20 * ms)
				return s.refusal(writer)
			}
			return nil
		}
		s.free(other)
		elapse(10 * ms)
		s.begin(t.Context(), l, locker.Request{Mode: locker.Shared, Note: "cut off", MaxWait: 5 * ms})
		check.Advance(time.Second)
		first.mustLock(t)
		leader.mustLock(t)
		check.OK(t, first.lock.Release(t.Context()))
		check.OK(t, leader.lock.Release(t.Context()))
	})
}
