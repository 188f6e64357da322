//realtime:ok each test runs in a bubble, by run of tools_test.go

package reentrant_test

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/middleware/retry"
)

// A tenure has one fencing token, from the first acquire that asks for one.
func TestFenceOfTheTenure(t *testing.T) {
	run(t, func(t *testing.T, b bench) {
		plain := b.me(t, locker.Request{})
		first := b.me(t, locker.Request{Fenced: true})
		second := b.me(t, locker.Request{Fenced: true})
		if plain.Fence() != 0 || first.Fence() == 0 || second.Fence() != first.Fence() {
			t.Errorf("fences %d, %d, %d; want none, one, the same", plain.Fence(), first.Fence(), second.Fence())
		}
		term, err := leaseOf(first).Do(t.Context(), lease.Op{Kind: lease.OpRaiseFence, Fence: first.Fence() + 1000})
		match(t, err)
		third := b.me(t, locker.Request{Fenced: true})
		if term.Fence != first.Fence()+1000 || third.Fence() != term.Fence {
			t.Errorf("raised to %d, entered again with %d; want %d", term.Fence, third.Fence(), first.Fence()+1000)
		}
		_, err = leaseOf(plain).Do(t.Context(), lease.Op{Kind: lease.OpRaiseFence, Fence: 1})
		match(t, err, errors.ErrUnsupported)
		for _, fence := range []int64{math.MaxInt64, 0, -1} {
			_, err = leaseOf(first).Do(t.Context(), lease.Op{Kind: lease.OpRaiseFence, Fence: fence})
			match(t, err, locker.ErrInvalid)
		}

		resumed, err := locker.Resume(t.Context(), b, third.Handle())
		match(t, err)
		fourth := b.me(t, locker.Request{Fenced: true})
		if resumed.Fence() <= third.Fence() || fourth.Fence() != resumed.Fence() {
			t.Errorf("resumed %d with %d, then entered with %d", third.Fence(), resumed.Fence(), fourth.Fence())
		}
		release(t, plain, first, second, resumed, fourth)
		next := b.me(t, locker.Request{Fenced: true})
		if next.Fence() <= fourth.Fence() {
			t.Errorf("the next tenure has %d, after %d", next.Fence(), fourth.Fence())
		}
		release(t, next)
	})
}

// The counter is kept for a day after the lock, and nothing shortens that.
func TestCounterOutlivesTheLock(t *testing.T) {
	run(t, func(t *testing.T, b bench) {
		const long = 10 * 24 * time.Hour
		outer := b.me(t, locker.Request{TTL: time.Second, Fenced: true})
		match(t, outer.Renew(t.Context(), long))
		inner := b.me(t, locker.Request{TTL: time.Second, Fenced: true})
		_, err := leaseOf(inner).Do(t.Context(), lease.Op{Kind: lease.OpRaiseFence, Fence: inner.Fence() + 1})
		match(t, err)
		inner, err = locker.Resume(t.Context(), b, inner.Handle())
		match(t, err)
		if kept := b.m.TTL(counter); kept < long+24*time.Hour {
			t.Errorf("the counter lives for %v", kept)
		}
		release(t, inner, outer)
	})
}

// A fence counter that is not a number is a permanent error: no one retries, and nothing is
// written.
func TestFenceCounterThatIsNoNumber(t *testing.T) {
	t.Parallel()
	for found, set := range map[string]func(b bench){
		"text":     func(b bench) { _ = b.m.Set(counter, "soon") },
		"a list":   func(b bench) { _, _ = b.m.Push(counter, "1") },
		"too much": func(b bench) { _ = b.m.Set(counter, "9007199254740991") },
	} {
		t.Run(found, func(t *testing.T) {
			run(t, func(t *testing.T, b bench) {
				l := locker.Chain(b.Locker, locker.Must(retry.New(retry.Config{})))
				refused := func() {
					t.Helper()
					before := b.m.Dump()
					start := time.Now()
					_, err := l.Acquire(t.Context(), locker.Request{Name: name, Owner: "me", Fenced: true})
					if !errors.Is(err, driver.ErrPermanent) || errors.Is(err, locker.ErrNotAcquired) || time.Since(start) > 0 {
						t.Errorf("%v after %v; want an error that does not pass, at once", err, time.Since(start))
					}
					if after := b.m.Dump(); after != before {
						t.Errorf("it wrote\n%s, and now there is\n%s", before, after)
					}
				}
				set(b)
				refused()
				outer := b.me(t, locker.Request{})
				refused()
				release(t, outer)
				b.m.Del(counter)
				outer = b.me(t, locker.Request{Fenced: true})
				b.m.Del(counter)
				set(b)
				refused()
				before := b.m.Dump()
				_, err := locker.Resume(t.Context(), b, outer.Handle())
				match(t, err, driver.ErrPermanent)
				_, err = leaseOf(outer).Do(t.Context(), lease.Op{Kind: lease.OpRaiseFence, Fence: 1})
				match(t, err, driver.ErrPermanent)
				if after := b.m.Dump(); after != before {
					t.Errorf("it wrote\n%s, and now there is\n%s", before, after)
				}
				match(t, outer.Renew(t.Context(), 0))
				release(t, outer)
				b.free(t)
			})
		})
	}
}

// The loss of the counter does not lower the token of the tenure.
func TestRaiseFenceAfterTheCounterWasLost(t *testing.T) {
	run(t, func(t *testing.T, b bench) {
		lock := b.me(t, locker.Request{Fenced: true})
		high := lock.Fence() + time.Hour.Microseconds()
		for _, to := range []int64{high, 1} {
			b.m.Del(counter)
			term, err := leaseOf(lock).Do(t.Context(), lease.Op{Kind: lease.OpRaiseFence, Fence: to})
			match(t, err)
			if term.Fence != high {
				t.Errorf("raised to %d, it is %d; want %d", to, term.Fence, high)
			}
		}
		inner := b.me(t, locker.Request{Fenced: true})
		if inner.Fence() != high {
			t.Errorf("entered again with %d, want %d", inner.Fence(), high)
		}
		release(t, inner, lock)
		if next := b.me(t, locker.Request{Fenced: true}); next.Fence() != high+1 {
			t.Errorf("the next tenure has %d after %d", next.Fence(), high)
		}
	})
}
