package keylock_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/strategies/reentrant"
	"github.com/holdfast-go/holdfast/strategies/rwhash"
	"github.com/holdfast-go/holdfast/strategies/single"
)

// A release says what it found out about the waiters of other processes, and wakes the one that is
// next.
func TestWhoIsNextAfterARelease(t *testing.T) {
	t.Parallel()
	const own, other = "own", "other"
	strategies := map[string]func(driver.Driver) (locker.Locker, error){
		"single":         func(d driver.Driver) (locker.Locker, error) { return single.New(d, single.Config{}) },
		"fair single":    fairLocks["single"],
		"reentrant":      func(d driver.Driver) (locker.Locker, error) { return reentrant.New(d, reentrant.Config{}) },
		"fair reentrant": fairLocks["reentrant"],
	}
	for what, tt := range map[string]struct {
		waiting []string // in the order of their places
		op      lease.Op
		want    lease.Others
		fair    lease.Others
		woken   string // "": nobody; it may acquire the lock, and no other waiter
	}{
		"nobody waits":                      {want: lease.OthersNone, fair: lease.OthersNone},
		"our waiter alone":                  {waiting: []string{own}, op: lease.Op{Waiter: own}, want: lease.OthersNone, fair: lease.OthersNone, woken: own},
		"our waiter first":                  {waiting: []string{own, other}, op: lease.Op{Waiter: own}, want: lease.OthersNone, fair: lease.OthersNone, woken: own},
		"another first":                     {waiting: []string{other, own}, op: lease.Op{Waiter: own}, want: lease.OthersWoken, fair: lease.OthersWoken, woken: other},
		"another, and we do not wait":       {waiting: []string{other}, want: lease.OthersWoken, fair: lease.OthersWoken, woken: other},
		"kept for our waiter":               {waiting: []string{other}, op: lease.Op{Waiter: own, Next: lease.NextOwn}, want: lease.OthersUnknown, fair: lease.OthersWoken},
		"our waiter, first, has given up":   {waiting: []string{own, other}, op: lease.Op{Waiter: own, Next: lease.NextOther}, want: lease.OthersWoken, fair: lease.OthersWoken, woken: other},
		"our waiter, alone, has given up":   {waiting: []string{own}, op: lease.Op{Waiter: own, Next: lease.NextOther}, want: lease.OthersNone, fair: lease.OthersNone},
		"one without a place of its own":    {waiting: []string{""}, want: lease.OthersWoken, fair: lease.OthersWoken},
		"our waiter, and one with no place": {waiting: []string{own, ""}, op: lease.Op{Waiter: own}, want: lease.OthersWoken, fair: lease.OthersWoken, woken: own},
	} {
		for s, open := range strategies {
			t.Run(what+"/"+s, func(t *testing.T) {
				t.Parallel()
				l := locker.Must(open(clients.OpenMemory(t, clients.NewMemory(t))))
				req := locker.Request{Name: name, TTL: time.Minute}
				held := locker.Must(l.Acquire(t.Context(), req))
				since := time.Now().Add(-time.Minute)
				try := func(id string) error {
					ctx := lease.WithWaiting(t.Context(), lease.Waiting{ID: id, Since: since.Add(time.Duration(slices.Index(tt.waiting, id)) * time.Second)})
					_, err := l.Acquire(ctx, req)
					return err
				}
				for _, id := range tt.waiting {
					if err := try(id); !errors.Is(err, locker.ErrNotAcquired) {
						t.Fatal(err)
					}
				}
				op := tt.op
				op.Kind = lease.OpRelease
				want := tt.want
				if s[:4] == "fair" {
					want = tt.fair
				}
				if term, err := leaseOf(held).Do(t.Context(), op); err != nil || term.Others != want {
					t.Errorf("the release found out %v, %v, want %v", term.Others, err, want)
				}
				if tt.woken == "" {
					return
				}
				for _, id := range tt.waiting {
					if id == tt.woken || id == "" {
						continue
					}
					if err := try(id); !errors.Is(err, locker.ErrNotAcquired) {
						t.Errorf("%s acquired the lock that %s was woken for: %v", id, tt.woken, err)
					}
				}
				if err := try(tt.woken); err != nil {
					t.Errorf("the one that was woken: %v", err)
				}
			})
		}
	}
}

// If a waiter gives up that a release counted on, a second release passes the lock on, though it
// was reserved.
func TestReleaseForAnother(t *testing.T) {
	t.Parallel()
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
	release.Next = lease.NextOther
	_, err = leaseOf(held).Do(t.Context(), release)
	match("the second release", err, locker.ErrLost)
	match("the second waiter", try("other", time.Second), nil)
}

// In a strict order an acquire passes its place on to the next waiter of its process, which so
// stays before those of other processes that came after it.
func TestAcquirePassesItsPlaceOn(t *testing.T) {
	t.Parallel()
	for s, open := range fairLocks {
		for _, held := range []bool{true, false} { // when the first one comes
			t.Run(fmt.Sprintf("%s/%v", s, held), func(t *testing.T) {
				t.Parallel()
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
					if _, err := l.Acquire(ctx, req); !errors.Is(err, locker.ErrNotAcquired) {
						t.Fatalf("%v, want ErrNotAcquired", err)
					}
				}
				first, other := ctx("own", time.Second, 2*time.Second), ctx("other", 3*time.Second, 0)
				if held {
					before := locker.Must(l.Acquire(t.Context(), req))
					refused(first)
					if err := before.Release(t.Context()); err != nil {
						t.Error(err)
					}
				}
				lock := locker.Must(l.Acquire(first, req))
				refused(other)
				if err := lock.Release(t.Context()); err != nil {
					t.Error(err)
				}
				refused(other)
				if _, err := l.Acquire(ctx("own", 2*time.Second, 0), req); err != nil {
					t.Errorf("the next one of the process: %v", err)
				}
			})
		}
	}
}

// A release of rwhash says that nobody waits only if nobody does.
func TestReadersAreOthers(t *testing.T) {
	t.Parallel()
	l := locker.Must(rwhash.New(clients.OpenMemory(t, clients.NewMemory(t)), rwhash.Config{}))
	req := locker.Request{Name: name, TTL: time.Minute}
	for _, want := range []lease.Others{lease.OthersNone, lease.OthersUnknown} {
		held := locker.Must(l.Acquire(t.Context(), req))
		if want != lease.OthersNone {
			waits := lease.WithWaiting(t.Context(), lease.Waiting{ID: "other", Since: time.Now()})
			if _, err := l.Acquire(waits, locker.Request{Name: name, Mode: locker.Shared}); !errors.Is(err, locker.ErrNotAcquired) {
				t.Fatal(err)
			}
		}
		if term, err := leaseOf(held).Do(t.Context(), lease.Op{Kind: lease.OpRelease}); err != nil || term.Others != want {
			t.Errorf("the release found out %v, %v, want %v", term.Others, err, want)
		}
	}
}

// A late attempt of a waiter that soon gives up does not end the place of the next one of its
// process.
func TestLateAttemptLeavesThePlace(t *testing.T) {
	t.Parallel()
	m := clients.NewMemory(t)
	l := locker.Must(single.New(clients.OpenMemory(t, m), single.Config{}))
	req := locker.Request{Name: name, TTL: time.Minute}
	held := locker.Must(l.Acquire(t.Context(), req))
	refused := func(w lease.Waiting) {
		t.Helper()
		if _, err := l.Acquire(lease.WithWaiting(t.Context(), w), req); !errors.Is(err, locker.ErrNotAcquired) {
			t.Fatal(err)
		}
	}
	refused(lease.Waiting{ID: "other", Since: time.Now()})
	refused(lease.Waiting{ID: "other", Since: time.Now(), Until: time.Now().Add(time.Millisecond)})
	time.Sleep(5 * time.Millisecond) //nolint:forbidigo // the server has a clock of its own
	if term, err := leaseOf(held).Do(t.Context(), lease.Op{Kind: lease.OpRelease}); err != nil || term.Others != lease.OthersWoken {
		t.Errorf("the release found out %v, %v, want that it woke the waiter", term.Others, err)
	}
}
