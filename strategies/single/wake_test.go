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
