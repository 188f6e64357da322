package locker_test

import (
	"context"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/locker/locktrace"
)

// A slow Acquired is part of the hold. If the lease ends meanwhile, NewLock does not wait for Lost.
func TestSlowAcquired(t *testing.T) {
	check.InFakeTime(t, func(t *testing.T) {
		held, lost := make(chan time.Duration, 1), make(chan struct{})
		pause := 5 * time.Second
		ctx := locktrace.With(t.Context(), &locktrace.Trace{
			Acquired: func(context.Context, locktrace.AcquiredInfo) { check.Advance(pause) },
			Released: func(_ context.Context, i locktrace.ReleasedInfo) { held <- i.Held },
			Lost:     func(context.Context, locktrace.LostInfo) { <-lost },
		})
		acquire := func() *locker.Lock {
			return locker.NewLock(ctx, lease.HoldInfo{
				Name: "a", Token: secret, TTL: time.Minute, Deadline: time.Now().Add(time.Minute),
			}, &fakeLease{})
		}
		check.OK(t, acquire().Release(t.Context()))
		check.Equal(t, "held", <-held, pause)
		pause = 2 * time.Minute
		made := make(chan struct{})
		go func() { acquire(); close(made) }()
		check.Advance(3 * time.Minute)
		if !check.Closed(made) {
			t.Error("NewLock waits for Lost")
		}
		close(lost)
		<-made
	})
}
