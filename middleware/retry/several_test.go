package retry_test

import (
	"testing"
	"testing/synctest"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/middleware/retry"
)

// Contract 14: the first try of AcquireAll passes no waiter of this process for one of the names,
// unless the call does not wait.
func TestSeveralPassNobody(t *testing.T) {
	bubbles(t, map[string]bool{"the call waits": false, "it does not wait": true}, func(t *testing.T, s *server, noWait bool) {
		l := wrap(t, s, retry.Config{})
		held := s.hold()
		waiter := s.begin(t.Context(), l, locker.Request{})
		before := len(s.times())
		done := make(chan error, 1)
		go func() {
			locks, err := locker.AcquireAll(t.Context(), l, []locker.Request{{Name: name, NoWait: noWait}, {Name: name + " too"}})
			if err == nil {
				err = locks.Release(t.Context())
			}
			done <- err
		}()
		synctest.Wait()
		attempts := map[string]int{}
		s.mu.Lock()
		for _, a := range s.attempts[before:] {
			attempts[a.name]++
		}
		s.mu.Unlock()
		check.Equal(t, "attempts at the other name", attempts[name+" too"], 1)
		if noWait {
			check.Equal(t, "attempts", attempts[name], 1)
			check.Error(t, "AcquireAll", <-done, locker.ErrNotAcquired)
		} else {
			check.Equal(t, "attempts while another request waits", attempts[name], 0)
		}
		s.free(held)
		waiter.wantLock(t, 0)
		check.OK(t, waiter.lock.Release(t.Context()))
		if !noWait {
			check.OK(t, <-done)
		}
	})
}
