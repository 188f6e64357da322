package locker_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/locker"
)

// slow is a Lease whose operations take so long, and which notes how many are under way.
type slow struct {
	takes     time.Duration
	now, most int
}

func (s *slow) Do(context.Context, locker.Op) (locker.Term, error) {
	s.now++
	s.most = max(s.most, s.now)
	<-time.After(s.takes)
	s.now--
	return locker.Term{}, nil
}

func TestConversionsOneAtATime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		lease := &slow{takes: time.Second}
		lock := hold(t, lease, time.Minute)
		start := time.Now()
		results := make(chan error)
		go func() { results <- lock.Downgrade(t.Context()) }()
		synctest.Wait()
		go func() { results <- lock.Upgrade(t.Context()) }()
		synctest.Wait()

		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		err := lock.Downgrade(ctx)
		wantError(t, "a conversion behind another", err, context.DeadlineExceeded)
		wantOp(t, err, "downgrade")
		if got := time.Since(start); got != time.Millisecond {
			t.Errorf("it took %v, its ctx ended after 1ms", got)
		}
		for range 2 {
			wantError(t, "a conversion", <-results)
		}
		if got := time.Since(start); got != 2*time.Second || lease.most != 1 || lock.Mode() != locker.Exclusive {
			t.Errorf("two conversions took %v, %d at once, and left the Lock %v", got, lease.most, lock.Mode())
		}
	})
}
