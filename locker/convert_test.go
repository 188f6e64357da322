package locker_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
)

func TestConversionsOneAtATime(t *testing.T) {
	check.InFakeTime(t, func(t *testing.T) {
		now, most := 0, 0 // conversions under way
		l := &fakeLease{answer: func(context.Context, lease.Op) (lease.Term, error) {
			now++
			most = max(most, now)
			<-time.After(time.Second)
			now--
			return lease.Term{}, nil
		}}
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
		check.Error(t, "a conversion behind another", err, context.DeadlineExceeded)
		wantOp(t, err, "downgrade")
		check.Took(t, "a conversion whose ctx ended", start, time.Millisecond)
		for range 2 {
			check.Error(t, "a conversion", <-results)
		}
		if got := time.Since(start); got != 2*time.Second || most != 1 || lock.Mode() != locker.Exclusive {
			t.Errorf("two conversions took %v, %d at once, and left the Lock %v", got, most, lock.Mode())
		}
	})
}

// Whatever became of a downgrade whose answer did not come: others may share from then on.
func TestModeAfterConversions(t *testing.T) {
	t.Parallel()
	unknown := fmt.Errorf("cut: %w", locker.ErrUnknownOutcome)
	type test struct {
		to    locker.Mode
		fails error
		want  locker.Mode
	}
	check.Each(t, map[string]test{
		"downgrade of unknown outcome":    {locker.Shared, unknown, locker.Shared},
		"downgrade that was not executed": {locker.Shared, errors.New("connection refused"), locker.Exclusive},
		"upgrade of unknown outcome":      {locker.Exclusive, unknown, locker.Shared},
		"refused upgrade":                 {locker.Exclusive, &locker.ContentionError{Name: "a"}, locker.Shared},
		"upgrade":                         {locker.Exclusive, nil, locker.Exclusive},
	}, func(t *testing.T, tt test) {
		l := &fakeLease{}
		lock, asked := hold(t, l, time.Minute), []lease.Op{{Kind: lease.OpConvert, Mode: locker.Shared}}
		convert := lock.Downgrade
		if tt.to == locker.Exclusive {
			check.Error(t, "downgrade", lock.Downgrade(t.Context()))
			convert, asked = lock.Upgrade, append(asked, lease.Op{Kind: lease.OpConvert, Mode: locker.Exclusive})
		}
		l.answer = func(context.Context, lease.Op) (lease.Term, error) { return lease.Term{}, tt.fails }
		check.Is(t, convert(t.Context()), tt.fails)
		if lock.Mode() != tt.want || lock.Err() != nil || !slices.Equal(l.asked(), asked) {
			t.Errorf("%v after it, asked %v; want it held and %v", lock, l.asked(), tt.want)
		}
	})
}
