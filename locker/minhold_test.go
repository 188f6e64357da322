package locker_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/locker/lockertest"
	"github.com/holdfast-go/holdfast/locker/locktrace"
)

// A release says until when the name stays taken: MinHold counts from the acquire.
func TestMinHoldOfRelease(t *testing.T) {
	t.Parallel()
	const minHold = 10 * time.Second
	type test struct {
		minHold time.Duration
		work    time.Duration
		keeps   bool
		drop    bool
	}
	check.EachInFakeTime(t, map[string]test{
		"none":             {},
		"none, dropped":    {drop: true},
		"at once":          {minHold: minHold, keeps: true},
		"at once, dropped": {minHold: minHold, drop: true},
		"later":            {minHold: minHold, work: minHold - 1, keeps: true},
		"at the end":       {minHold: minHold, work: minHold},
		"after the end":    {minHold: minHold, work: 2 * minHold},
	}, func(t *testing.T, tt test) {
		l := &fakeLease{}
		var traced time.Time
		ctx := locktrace.With(t.Context(), &locktrace.Trace{Released: func(_ context.Context, info locktrace.ReleasedInfo) {
			traced = info.KeepUntil
		}})
		g := lease.Grant{Name: "a", Token: secret, TTL: time.Minute, Deadline: time.Now().Add(time.Minute), MinHold: tt.minHold}
		lock := locker.NewLock(ctx, g, l)
		var want time.Time
		if tt.keeps {
			want = time.Now().Add(minHold)
		}
		time.Sleep(tt.work) //nolint:forbidigo // fake time
		rest := (max(tt.minHold-tt.work, 0) + time.Millisecond - 1).Truncate(time.Millisecond)
		check.Equal(t, "MinHold of the Handle", lock.Handle().Grant().MinHold, rest)
		if tt.drop {
			lock.DropMinHold()
		}
		check.Error(t, "Release", lock.Release(t.Context()))
		ops := l.asked()
		if got := ops[len(ops)-1].KeepUntil; !got.Equal(want) || !traced.Equal(want) {
			t.Errorf("the release keeps the name until %v, traced as %v, want %v", got, traced, want)
		}
	})
}

// What AcquireAll releases because another name failed was never held by its caller.
func TestAcquireAllThatFailsKeepsNoName(t *testing.T) {
	t.Parallel()
	l := lockertest.New()
	l.Hold(locker.Request{Name: "b"})
	reqs := []locker.Request{{Name: "a", MinHold: time.Hour}, {Name: "b", NoWait: true}}
	if _, err := locker.AcquireAll(t.Context(), l, reqs); !errors.Is(err, locker.ErrNotAcquired) {
		t.Fatal(err)
	}
	l.Forget("b")
	reqs = append(reqs, locker.Request{Name: "a", TTL: time.Minute})
	locks := locker.Must(locker.AcquireAll(t.Context(), l, reqs))
	check.Equal(t, "TTL of two requests, of which one has a MinHold", locks.All()[0].TTL(), time.Hour)
	check.Error(t, "Release", locks.Release(t.Context()))
	if _, err := l.Acquire(t.Context(), locker.Request{Name: "a"}); !errors.Is(err, locker.ErrNotAcquired) {
		t.Errorf("the name is free before MinHold: %v", err)
	}
}
