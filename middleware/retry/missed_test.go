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
