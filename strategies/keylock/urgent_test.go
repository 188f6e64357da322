package keylock_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
)

// urgency records the calls marked as urgent.
type urgency struct {
	driver.Driver
	calls []bool
}

func (u *urgency) SetNX(ctx context.Context, key, value string, ttl time.Duration) (bool, error) {
	u.calls = append(u.calls, driver.Urgent(ctx))
	return u.Driver.SetNX(ctx, key, value, ttl)
}

func (u *urgency) Eval(ctx context.Context, s *driver.Script, keys, args []string) (driver.Reply, error) {
	u.calls = append(u.calls, driver.Urgent(ctx))
	return u.Driver.Eval(ctx, s, keys, args)
}

// TestUrgentCalls checks that a driver can tell an acquire from a call that keeps or ends a hold.
func TestUrgentCalls(t *testing.T) {
	eachStrategy(t, settings{}, func(t *testing.T, b *bench) {
		u := &urgency{Driver: b.drv}
		b.Locker = locker.Must(b.new(u, settings{}))
		lock := b.acquire(t, locker.Request{})
		resumed := locker.Must(locker.Resume(t.Context(), b, lock.Handle()))
		wantNone(t, resumed.Renew(t.Context(), 0))
		wantNone(t, resumed.Release(t.Context()))
		if want := []bool{false, true, true, true}; !slices.Equal(u.calls, want) {
			t.Errorf("acquire, resume, renew and release were urgent: %v, want %v", u.calls, want)
		}
	})
}
