package retry_test

import (
	"context"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/middleware/retry"
)

// Try returns false and no error while the requests of one owner contend for a lock that is not
// reentrant, with or without time for an attempt of their own.
func TestTryBehindItsOwnOwner(t *testing.T) {
	bubbles(t, map[string]time.Duration{"held all the time": time.Minute, "held in turn": 20 * ms}, tryBehindItsOwnOwner)
}

func tryBehindItsOwnOwner(t *testing.T, s *server, hold time.Duration) {
	t.Helper()
	s.noPubSub, s.latency = true, 30*ms
	s.answer = func(int, locker.Request) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		if len(s.held[name]) > 0 {
			return &locker.ContentionError{Name: name, Owner: "me"}
		}
		return nil
	}
	l := wrap(t, s, retry.Config{})
	var failed, ran [16]int
	var last [16]error
	for i := range failed {
		go func() {
			elapse(time.Duration(i) * 3 * ms)
			for time.Since(s.start) < 2*time.Second {
				ok, err := locker.Try(t.Context(), l, locker.Request{Name: name, Owner: "me", MaxWait: 100 * ms},
					func(context.Context, *locker.Lock) error { elapse(hold); return nil })
				switch {
				case err != nil:
					failed[i]++
					last[i] = err
				case ok:
					ran[i]++
				}
			}
		}()
	}
	check.Advance(2 * time.Minute)
	if failed != [16]int{} || ran == [16]int{} {
		t.Errorf("errors of each caller %v (the last ones: %v), calls that ran %v", failed, last, ran)
	}
}
