package redlock_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/locktrace"
	"github.com/holdfast-go/holdfast/middleware/retry"
	"github.com/holdfast-go/holdfast/strategies/redlock"
	"github.com/holdfast-go/holdfast/strategies/reentrant"
	"github.com/holdfast-go/holdfast/strategies/rwhash"
	"github.com/holdfast-go/holdfast/strategies/watchdog"
)

// Readers and writers at a quorum of rwhash, with one node of five killed and one frozen.
func TestReadersAtMasters(t *testing.T) {
	t.Parallel()
	m := startMasters(t)
	strategy := func(drv driver.Driver) locker.Locker { return locker.Must(rwhash.New(drv, rwhash.Config{})) }
	one, two := m.quorum(0, lenient, strategy), m.quorum(1, lenient, strategy)
	m.kill(4)
	m.freeze(0)
	read := locker.Request{Name: name, Mode: locker.Shared, TTL: long, NoWait: true}
	write := locker.Request{Name: name, TTL: long, NoWait: true, Fenced: true}

	first, second := m.acquire(one, read), m.acquire(two, read)
	m.refused(two, write)
	m.eventually(func() string { // one of the three that answer may be late for the verdict
		err := first.Upgrade(t.Context())
		if err == nil {
			t.Fatal("upgraded beside another reader")
		}
		return m.contended(err)
	})
	if first.Mode() != locker.Shared || first.Err() != nil {
		t.Errorf("%v, Err %v after an upgrade that was refused", first, first.Err())
	}
	m.release(second)

	m.eventually(func() string {
		if err := first.Upgrade(t.Context()); err != nil {
			return err.Error()
		}
		return ""
	})
	m.refused(two, read)
	m.renewedAs(first, locker.Exclusive)
	match(t, first.Downgrade(t.Context()))
	m.renewedAs(first, locker.Shared)
	m.release(m.acquire(two, read))
	m.refused(two, write)
	m.release(first)

	writer := m.acquire(two, write)
	m.refused(one, read)
	m.release(writer)
	m.thaw(0)
	m.restart(4)
	m.nothingStays()
}

// Do in Do, and a helper that is another process and was told the owner, over reentrant.
func TestReentryAtMasters(t *testing.T) {
	t.Parallel()
	m := startMasters(t)
	strategy := func(drv driver.Driver) locker.Locker { return locker.Must(reentrant.New(drv, reentrant.Config{})) }
	one, two := m.quorum(1, lenient, strategy), m.quorum(2, lenient, strategy)
	m.kill(1)
	m.freeze(2)
	req := locker.Request{Name: name, TTL: long, Fenced: true}
	inside := 0
	err := locker.Do(t.Context(), one, req, func(ctx context.Context, outer *locker.Lock) error {
		m.refused(two, req)
		for _, l := range []locker.Locker{one, two} {
			err := locker.Do(ctx, l, req, func(ctx context.Context, inner *locker.Lock) error {
				inside++
				state, err := one.Inspect(ctx, name)
				if err != nil || state.Holds != 2 || state.Owner != outer.Owner() || inner.Owner() != outer.Owner() {
					t.Errorf("state %+v, %v inside of the second Do; want 2 holds of %q", state, err, outer.Owner())
				}
				if inner.Fence() != outer.Fence() {
					t.Errorf("the fence is %d inside, %d outside: it is one tenure", inner.Fence(), outer.Fence())
				}
				return nil
			})
			match(t, err)
		}
		m.refused(two, req) // the inner release did not end the outer hold
		return outer.Err()
	})
	match(t, err)
	if inside != 2 {
		t.Errorf("it was entered again %d times, want 2", inside)
	}
	m.release(m.acquire(two, req))
	m.thaw(2)
	m.restart(1)
	m.nothingStays()
}

// The watchdog keeps a lock over several TTLs although nodes come and go. The lock ends when no
// quorum is left.
func TestWatchedAtMasters(t *testing.T) {
	t.Parallel()
	m := startMasters(t)
	const ttl = 3 * time.Second // on a busy machine, too
	bare := m.quorum(2, redlock.Config{AttemptTimeout: ttl / 2}, nil)
	renewals := make(chan locktrace.RenewedInfo, 1000)
	ctx := locktrace.With(t.Context(), &locktrace.Trace{Renewed: func(_ context.Context, r locktrace.RenewedInfo) { renewals <- r }})
	m.kill(0)
	lock, err := locker.Chain(bare, locker.Must(watchdog.New(watchdog.Config{}))).Acquire(ctx, locker.Request{Name: name, TTL: ttl, Fenced: true})
	if err != nil {
		t.Fatal(err)
	}
	start := lock.Deadline()
	holds := func(until time.Time) {
		t.Helper()
		for lock.Deadline().Before(until) {
			select {
			case <-renewals:
			case <-lock.Done():
				t.Fatalf("lost: %v", lock.Err())
			}
		}
		m.refused(bare, locker.Request{Name: name, TTL: ttl})
	}
	holds(start.Add(ttl))
	m.restart(0)
	m.freeze(1)
	holds(start.Add(2 * ttl))
	m.kill(2)
	holds(start.Add(3 * ttl))
	m.kill(3)
	m.ends(lock)
}

// A waiter is woken by releases at a quorum where one node is killed and one frozen, and gets the
// lock. No lease ends before the test does; the backoff is for an attempt that a late answer makes
// an outage.
func TestWaitingAtMasters(t *testing.T) {
	t.Parallel()
	m := startMasters(t)
	rarely := retry.Config{Policy: func() backoff.BackOff { return backoff.NewConstantBackOff(3 * time.Second) }}
	holder := m.quorum(1, lenient, nil)
	bare := m.quorum(2, lenient, nil)
	waiter := locker.Chain(bare, locker.Must(retry.New(rarely)))
	m.kill(0)
	m.freeze(1)
	req := locker.Request{Name: name, TTL: long, Fenced: true}
	held := m.acquireSoon(holder, req)
	m.refused(bare, req) // its connections are open now
	subscribed := make(chan struct{}, 100)
	ctx, cancel := context.WithTimeout(t.Context(), 2*soon)
	defer cancel()
	var heard atomic.Bool
	ctx = locktrace.With(ctx, &locktrace.Trace{
		Waiting: func(_ context.Context, info locktrace.WaitingInfo) {
			if info.Subscribed {
				subscribed <- struct{}{}
			}
		},
		Woken: func(_ context.Context, info locktrace.WokenInfo) {
			if info.By == locktrace.ByRelease {
				heard.Store(true)
			}
		},
	})
	got := make(chan *locker.Lock, 1)
	go func() {
		defer close(got)
		lock, err := waiter.Acquire(ctx, req)
		if err != nil {
			t.Errorf("the waiter: %v", err)
			return
		}
		got <- lock
	}()
	select {
	case <-subscribed:
	case <-ctx.Done():
		t.Fatal("the waiter never waits with a subscription")
	}
	m.release(held)
	if next, ok := <-got; ok {
		if next.Fence() <= held.Fence() {
			t.Errorf("fence %d after %d", next.Fence(), held.Fence())
		}
		if !heard.Load() {
			t.Error("it has not heard of the release")
		}
		m.release(next)
	}
}
