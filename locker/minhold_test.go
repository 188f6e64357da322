package locker_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/locker/lockertest"
	"github.com/holdfast-go/holdfast/locker/locktrace"
)

// A release says until when the name stays taken: MinHold counts from the acquire.
func TestMinHoldOfRelease(t *testing.T) {
	t.Parallel()
	const minHold = 10 * time.Second
	for _, tt := range []struct {
		name    string
		minHold time.Duration
		work    time.Duration
		keeps   bool
		drop    bool
	}{
		{name: "none"},
		{name: "none, dropped", drop: true},
		{name: "at once", minHold: minHold, keeps: true},
		{name: "at once, dropped", minHold: minHold, drop: true},
		{name: "later", minHold: minHold, work: minHold - 1, keeps: true},
		{name: "at the end", minHold: minHold, work: minHold},
		{name: "after the end", minHold: minHold, work: 2 * minHold},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
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
				if got := lock.Handle().Grant().MinHold; got != rest {
					t.Errorf("the Handle has a MinHold of %v, want %v", got, rest)
				}
				if tt.drop {
					lock.DropMinHold()
				}
				wantError(t, "Release", lock.Release(t.Context()))
				ops := l.asked()
				if got := ops[len(ops)-1].KeepUntil; !got.Equal(want) || !traced.Equal(want) {
					t.Errorf("the release keeps the name until %v, traced as %v, want %v", got, traced, want)
				}
			})
		})
	}
}

// Nobody gets a name that a release keeps taken, until MinHold has passed.
func TestMinHoldInMemory(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, ctx := lockertest.New(), t.Context()
		req := locker.Request{Name: "a", MinHold: 2 * locker.DefaultTTL, Owner: "o", Note: "n"}
		lock := locker.Must(l.Acquire(ctx, req))
		if lock.TTL() != req.MinHold {
			t.Errorf("TTL %v, want MinHold", lock.TTL())
		}
		time.Sleep(time.Second) //nolint:forbidigo // fake time
		resumed := locker.Must(locker.Resume(ctx, l, lock.Handle()))
		wantError(t, "Release", resumed.Release(ctx))
		_, err := l.Acquire(ctx, req)
		held, ok := errors.AsType[*locker.ContentionError](err)
		if !ok || !held.Released || held.Left != req.MinHold-time.Second || held.Owner != "o" || held.Note != "n" {
			t.Errorf("the refusal: %v", err)
		}
		state, err := l.Inspect(ctx, "a")
		if want := (locker.State{Held: true, Owner: "o", Note: "n", Left: req.MinHold - time.Second}); err != nil || state != want {
			t.Errorf("Inspect: %+v, %v, want %+v", state, err, want)
		}
		if _, err := locker.Resume(ctx, l, resumed.Handle()); !errors.Is(err, locker.ErrNotHeld) {
			t.Errorf("Resume of what was released: %v", err)
		}
		time.Sleep(held.Left) //nolint:forbidigo // fake time
		wantError(t, "Release", locker.Must(l.Acquire(ctx, req)).Release(ctx))
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
	if ttl := locks.All()[0].TTL(); ttl != time.Hour {
		t.Errorf("the TTL of two requests is %v, want the MinHold of one", ttl)
	}
	wantError(t, "Release", locks.Release(t.Context()))
	if _, err := l.Acquire(t.Context(), locker.Request{Name: "a"}); !errors.Is(err, locker.ErrNotAcquired) {
		t.Errorf("the name is free before MinHold: %v", err)
	}
}
