package leader_test

import (
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/leader"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lockertest"
)

// It yields changes, at the interval and when the lease ends, and ends with a loop that is left.
func TestObserve(t *testing.T) {
	check.InFakeTime(t, func(t *testing.T) {
		l := lockertest.New()
		lock := locker.Must(l.Acquire(t.Context(), locker.Request{Name: name, TTL: 2500 * time.Millisecond, Note: "a", Fenced: true}))
		start, seen := time.Now(), []leader.Leader{}
		for now, err := range leader.Observe(t.Context(), l, name, time.Second) {
			match(t, err)
			if seen = append(seen, now); now == (leader.Leader{}) {
				break
			}
			match(t, lock.Renew(t.Context(), 0))
		}
		if took := time.Since(start); took < 2500*time.Millisecond || took > 2600*time.Millisecond || len(seen) != 2 || seen[0] != (leader.Leader{Note: "a", Term: 1}) {
			t.Errorf("saw %+v, the end of the lease after %v", seen, took)
		}
		for _, err := range leader.Observe(t.Context(), locker.Func(l.Acquire), name, 0) {
			match(t, err, errors.ErrUnsupported)
		}
	})
}
