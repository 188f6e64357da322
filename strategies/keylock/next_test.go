package keylock_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/strategies/reentrant"
	"github.com/holdfast-go/holdfast/strategies/rwhash"
	"github.com/holdfast-go/holdfast/strategies/single"
)

// A release reports whether other processes wait, and wakes the next waiter.
func TestWhoIsNextAfterARelease(t *testing.T) {
	t.Parallel()
	const own, other = "own", "other"
	strategies := map[string]opener{
		"single":         func(d driver.Driver) (locker.Locker, error) { return single.New(d, single.Config{}) },
		"fair single":    fairLocks["single"],
		"reentrant":      func(d driver.Driver) (locker.Locker, error) { return reentrant.New(d, reentrant.Config{}) },
		"fair reentrant": fairLocks["reentrant"],
	}
	alone, woke := lease.Result{Alone: true}, lease.Result{WokeOther: true}
	for what, tt := range map[string]struct {
		waiting []string // in the order of their places
		op      lease.Op
		want    lease.Result
		fair    lease.Result
		woken   string // "": nobody; it may acquire the lock, and no other waiter
	}{
		"nobody waits":                      {want: alone, fair: alone},
		"our waiter alone":                  {waiting: []string{own}, op: lease.Op{Waiter: own}, want: alone, fair: alone, woken: own},
		"our waiter first":                  {waiting: []string{own, other}, op: lease.Op{Waiter: own}, want: alone, fair: alone, woken: own},
		"another first":                     {waiting: []string{other, own}, op: lease.Op{Waiter: own}, want: woke, fair: woke, woken: other},
		"another, and we do not wait":       {waiting: []string{other}, want: woke, fair: woke, woken: other},
		"kept for our waiter":               {waiting: []string{other}, op: lease.Op{Waiter: own, ForWaiter: true}, fair: woke},
		"our waiter, first, has given up":   {waiting: []string{own, other}, op: lease.Op{Waiter: own, WaiterLeft: true}, want: woke, fair: woke, woken: other},
		"our waiter, alone, has given up":   {waiting: []string{own}, op: lease.Op{Waiter: own, WaiterLeft: true}, want: alone, fair: alone},
		"one without a place of its own":    {waiting: []string{""}, want: woke, fair: woke},
		"our waiter, and one with no place": {waiting: []string{own, ""}, op: lease.Op{Waiter: own}, want: woke, fair: woke, woken: own},
	} {
		for s, open := range strategies {
			t.Run(what+"/"+s, func(t *testing.T) {
				t.Parallel()
				clients.Bubble(t, func(t *testing.T) {
					l := locker.Must(open(clients.OpenMemory(t, clients.NewMemory(t))))
					req := locker.Request{Name: name, TTL: time.Minute}
					held := locker.Must(l.Acquire(t.Context(), req))
					since := time.Now().Add(-time.Minute)
					try := func(id string) error {
						place := time.Duration(slices.Index(tt.waiting, id)) * time.Second
						return check.ErrOf(l.Acquire(lease.WithWaiting(t.Context(), lease.Waiting{ID: id, Since: since.Add(place)}), req))
					}
					for _, id := range tt.waiting {
						wantIs(t, try(id), locker.ErrNotAcquired)
					}
					op := tt.op
					op.Kind = lease.OpRelease
					want := tt.want
					if s[:4] == "fair" {
						want = tt.fair
					}
					wantOthers(t, held, op, want)
					if tt.woken == "" {
						return
					}
					for _, id := range tt.waiting {
						if id != tt.woken && id != "" {
							check.Error(t, id+", while another was woken", try(id), locker.ErrNotAcquired)
						}
					}
					check.Error(t, "the one that was woken", try(tt.woken))
				})
			})
		}
	}
}

// wantOthers releases held, and demands its report on the waiters.
func wantOthers(t *testing.T, held *locker.Lock, op lease.Op, want lease.Result) {
	t.Helper()
	result, err := leaseOf(held).Do(t.Context(), op)
	wantNone(t, err)
	check.Equal(t, "what the release found out", result, want)
}

// If the waiter that a release relied on gives up, a second release passes on the lock, despite the
// reservation.
func TestReleaseForAnother(t *testing.T) {
	t.Parallel()
	clients.Bubble(t, func(t *testing.T) {
		l := locker.Must(single.New(clients.OpenMemory(t, clients.NewMemory(t)), single.Config{Fair: true}))
		req := locker.Request{Name: name, TTL: time.Minute}
		held := locker.Must(l.Acquire(t.Context(), req))
		try := func(id string, waited time.Duration) error {
			_, err := l.Acquire(lease.WithWaiting(t.Context(), lease.Waiting{ID: id, Since: time.Now().Add(-waited)}), req)
			return err
		}
		match := func(what string, err, want error) {
			t.Helper()
			if !errors.Is(err, want) {
				t.Errorf("%s: %v, want %v", what, err, want)
			}
		}
		match("the first waiter", try("own", 2*time.Second), locker.ErrNotAcquired)
		match("the second waiter", try("other", time.Second), locker.ErrNotAcquired)
		release := lease.Op{Kind: lease.OpRelease, Waiter: "own"}
		_, err := leaseOf(held).Do(t.Context(), release)
		match("the release", err, nil)
		release.WaiterLeft = true
		_, err = leaseOf(held).Do(t.Context(), release)
		match("the second release", err, locker.ErrLost)
		match("the second waiter", try("other", time.Second), nil)
	})
}

// In a strict order an acquire passes its place on to the next waiter of its process, ahead of
// later waiters of other processes.
func TestAcquirePassesItsPlaceOn(t *testing.T) {
	t.Parallel()
	for s, open := range fairLocks {
		for _, held := range []bool{true, false} { // when the first one comes
			t.Run(fmt.Sprintf("%s/%v", s, held), func(t *testing.T) {
				t.Parallel()
				clients.Bubble(t, func(t *testing.T) {
					l := locker.Must(open(clients.OpenMemory(t, clients.NewMemory(t))))
					req, start := locker.Request{Name: name, TTL: time.Minute}, time.Now().Add(-time.Minute)
					ctx := func(id string, since, next time.Duration) context.Context {
						w := lease.Waiting{ID: id, Since: start.Add(since)}
						if next > 0 {
							w.Next = start.Add(next)
						}
						return lease.WithWaiting(t.Context(), w)
					}
					refused := func(ctx context.Context) {
						t.Helper()
						wantIs(t, check.ErrOf(l.Acquire(ctx, req)), locker.ErrNotAcquired)
					}
					first, other := ctx("own", time.Second, 2*time.Second), ctx("other", 3*time.Second, 0)
					if held {
						before := locker.Must(l.Acquire(t.Context(), req))
						refused(first)
						check.OK(t, before.Release(t.Context()))
					}
					lock := locker.Must(l.Acquire(first, req))
					refused(other)
					check.OK(t, lock.Release(t.Context()))
					refused(other)
					check.Error(t, "the next one of the process", check.ErrOf(l.Acquire(ctx("own", 2*time.Second, 0), req)))
				})
			})
		}
	}
}

// A release of rwhash reports no waiters only if there are none.
func TestReadersAreOthers(t *testing.T) {
	t.Parallel()
	clients.Bubble(t, func(t *testing.T) {
		l := locker.Must(rwhash.New(clients.OpenMemory(t, clients.NewMemory(t)), rwhash.Config{}))
		req := locker.Request{Name: name, TTL: time.Minute}
		for _, want := range []lease.Result{{Alone: true}, {WokeOther: true}} {
			held := locker.Must(l.Acquire(t.Context(), req))
			if want.WokeOther {
				waits := lease.WithWaiting(t.Context(), lease.Waiting{ID: "other", Since: time.Now()})
				wantIs(t, check.ErrOf(l.Acquire(waits, locker.Request{Name: name, Mode: locker.Shared})), locker.ErrNotAcquired)
			}
			wantOthers(t, held, lease.Op{Kind: lease.OpRelease}, want)
		}
	})
}

// A late attempt of a waiter about to give up does not end the place of its process's next waiter.
func TestLateAttemptLeavesThePlace(t *testing.T) {
	t.Parallel()
	clients.Bubble(t, func(t *testing.T) {
		m := clients.NewMemory(t)
		l := locker.Must(single.New(clients.OpenMemory(t, m), single.Config{}))
		req := locker.Request{Name: name, TTL: time.Minute}
		held := locker.Must(l.Acquire(t.Context(), req))
		refused := func(w lease.Waiting) {
			t.Helper()
			wantIs(t, check.ErrOf(l.Acquire(lease.WithWaiting(t.Context(), w), req)), locker.ErrNotAcquired)
		}
		refused(lease.Waiting{ID: "other", Since: time.Now()})
		refused(lease.Waiting{ID: "other", Since: time.Now(), Until: time.Now().Add(time.Millisecond)})
		time.Sleep(5 * time.Millisecond) //nolint:forbidigo // fake time
		wantOthers(t, held, lease.Op{Kind: lease.OpRelease}, lease.Result{WokeOther: true})
	})
}
