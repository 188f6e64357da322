package single_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/strategies/single"
)

// waits returns a ctx for an attempt of a waiter that has waited for d.
func waits(t *testing.T, id string, d time.Duration) context.Context {
	t.Helper()
	return lease.WithWaiting(t.Context(), lease.Waiting{ID: id, Since: time.Now().Add(-d)})
}

// A release that is sent again in the background wakes the first waiter: its own process has tried
// by then.
func TestLateReleaseWakesOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, single.Config{})
		req := locker.Request{Name: "job", TTL: time.Minute}
		held := locker.Must(b.Acquire(t.Context(), req))
		var inner lease.Lease
		held.Hold().Wrap(func(l lease.Lease) lease.Lease { inner = l; return l })
		own, other := lease.NewToken(), lease.NewToken()
		for id, d := range map[string]time.Duration{own: time.Second, other: 2 * time.Second} {
			if _, err := b.Acquire(waits(t, id, d), req); !errors.Is(err, locker.ErrNotAcquired) {
				t.Fatal(err)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		b.drv.Then(fault{Hang: true})
		if _, err := inner.Do(ctx, lease.Op{Kind: lease.OpRelease, Waiter: own}); !errors.Is(err, locker.ErrUnknownOutcome) {
			t.Fatal(err)
		}
		<-time.After(100 * time.Millisecond)
		if score, err := b.m.ZScore("{job}:waiters", other); err != nil || score >= 0 || b.m.Exists("job") {
			t.Errorf("the first waiter was not woken: score %v, %v", score, err)
		}
	})
}

// A lock that is kept for a waiter is not another library's: those behind do not poll it as such.
func TestReservationIsOurs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, single.Config{Fair: true})
		req := locker.Request{Name: "job", TTL: time.Minute}
		held := locker.Must(b.Acquire(t.Context(), req))
		first, second := lease.NewToken(), lease.NewToken()
		for _, release := range []bool{false, true} {
			if release {
				if err := held.Release(t.Context()); err != nil {
					t.Fatal(err)
				}
			} else if _, err := b.Acquire(waits(t, first, 2*time.Second), req); !errors.Is(err, locker.ErrNotAcquired) {
				t.Fatal(err)
			}
			_, err := b.Acquire(waits(t, second, time.Second), req)
			var refusal *locker.ContentionError
			if !errors.As(err, &refusal) || refusal.Foreign {
				t.Errorf("released: %v, the refusal is %+v", release, refusal)
			}
		}
	})
}

// Inspect counts each process that waits once, until its place no longer counts, and waiters
// without a place as one if nobody has a place.
func TestInspectCountsWaiters(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, single.Config{})
		req := locker.Request{Name: "job", TTL: time.Minute}
		locker.Must(b.Acquire(t.Context(), req))
		counts := func(want int, when string) {
			t.Helper()
			if state, err := b.Inspect(t.Context(), "job"); err != nil || state.Waiters != want {
				t.Errorf("%s: %d waiters, %v; want %d", when, state.Waiters, err, want)
			}
		}
		try := func(ctx context.Context, req locker.Request) {
			t.Helper()
			if _, err := b.Acquire(ctx, req); !errors.Is(err, locker.ErrNotAcquired) {
				t.Fatal(err)
			}
		}
		counts(0, "nobody waits")
		try(t.Context(), locker.Request{Name: "job", NoWait: true})
		counts(0, "after an attempt that does not wait")
		try(t.Context(), req)
		try(t.Context(), req)
		counts(1, "two waiters without a place")
		first, second := lease.NewToken(), lease.NewToken()
		for i, id := range []string{first, second, first} {
			try(waits(t, id, time.Second), req)
			counts(min(i+1, 2), "and processes with a place")
		}
		<-time.After(4 * time.Second)
		try(waits(t, second, time.Second), req)
		<-time.After(2 * time.Second)
		counts(1, "one of them tried again")
		if _, err := locker.Break(t.Context(), b, "job"); err != nil {
			t.Fatal(err)
		}
		counts(1, "the lock is free, and kept for the waiter")
		<-time.After(5 * time.Second)
		counts(0, "the waiter has died")
	})
}
