package locker_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
)

// slow is a Lease whose operations take so long, and which notes how many are under way.
type slow struct {
	takes     time.Duration
	now, most int
}

func (s *slow) Do(context.Context, lease.Op) (lease.Term, error) {
	s.now++
	s.most = max(s.most, s.now)
	<-time.After(s.takes)
	s.now--
	return lease.Term{}, nil
}

func TestConversionsOneAtATime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &slow{takes: time.Second}
		lock := hold(t, l, time.Minute)
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
		if got := time.Since(start); got != 2*time.Second || l.most != 1 || lock.Mode() != locker.Exclusive {
			t.Errorf("two conversions took %v, %d at once, and left the Lock %v", got, l.most, lock.Mode())
		}
	})
}

// Whatever became of a downgrade whose answer did not come: others may share from then on.
func TestModeAfterConversionsThatFail(t *testing.T) {
	t.Parallel()
	unknown := fmt.Errorf("cut: %w", locker.ErrUnknownOutcome)
	for _, tt := range []struct {
		name  string
		to    locker.Mode
		fails error
		want  locker.Mode
	}{
		{"downgrade of unknown outcome", locker.Shared, unknown, locker.Shared},
		{"downgrade that was not executed", locker.Shared, errors.New("connection refused"), locker.Exclusive},
		{"upgrade of unknown outcome", locker.Exclusive, unknown, locker.Shared},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			l := &fakeLease{}
			lock := hold(t, l, time.Minute)
			convert := lock.Downgrade
			if tt.to == locker.Exclusive {
				wantError(t, "downgrade", lock.Downgrade(t.Context()))
				convert = lock.Upgrade
			}
			l.answer = func(context.Context, lease.Op) (lease.Term, error) { return lease.Term{}, tt.fails }
			wantError(t, tt.name, convert(t.Context()), tt.fails)
			if lock.Mode() != tt.want || lock.Err() != nil {
				t.Errorf("%v after it, want it held and %v", lock, tt.want)
			}
		})
	}
}
