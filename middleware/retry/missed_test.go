package retry_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/middleware/retry"
)

// A request with an owner does not miss a release in this process between its first attempt and its
// wait.
func TestOwnerHearsALocalRelease(t *testing.T) {
	t.Parallel()
	for _, owner := range []string{"", "me"} {
		synctest.Test(t, func(t *testing.T) {
			s := newServer()
			s.noPubSub = true
			var held *locker.Lock
			l := wrap(t, s, retry.Config{Policy: func() backoff.BackOff {
				if held != nil {
					_ = held.Release(context.Background()) // it was just refused
				}
				return backoff.NewConstantBackOff(time.Hour)
			}})
			var err error
			if held, err = l.Acquire(t.Context(), locker.Request{Name: name}); err != nil {
				t.Fatal(err)
			}
			start := time.Now()
			lock := locker.Must(l.Acquire(t.Context(), locker.Request{Name: name, Owner: owner}))
			tookAtMost(t, start, time.Minute)
			check.OK(t, lock.Release(t.Context()))
		})
	}
}

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
