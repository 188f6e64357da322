package reentrant_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/middleware/retry"
	"github.com/holdfast-go/holdfast/strategies/reentrant"
)

// A refusal reports who holds, for how long, and the channel to listen to.
func TestRefusal(t *testing.T) {
	run(t, func(t *testing.T, b bench) {
		outer := b.me(t, locker.Request{TTL: 10 * time.Second, Note: "nightly"})
		inner := b.me(t, locker.Request{TTL: time.Second, Note: "within"})
		held := b.refusal(t)
		if held.Name != name || held.Owner != "me" || held.Note != "nightly" || held.RetryAfter != 10*time.Second {
			t.Errorf("refused with %+v", held)
		}
		if held.Channel == (driver.Channel{}) {
			t.Error("there is no channel to listen on")
		}
		if state := b.holds(t, 2); state.Owner != "me" || state.Note != "nightly" || state.Left != 10*time.Second {
			t.Errorf("state %+v", state)
		}
		release(t, inner, outer)
		b.free(t)
	})
}

// Without an owner each acquire gets an owner of its own, which the Lock returns.
func TestRandomOwner(t *testing.T) {
	run(t, func(t *testing.T, b bench) {
		lock, err := b.Acquire(t.Context(), locker.Request{Name: name})
		match(t, err)
		if held := b.refusal(t); len(lock.Owner()) != lease.TokenLen || held.Owner != lock.Owner() {
			t.Errorf("held by %q, the Lock says %q", held.Owner, lock.Owner())
		}
		_, err = b.Acquire(t.Context(), locker.Request{Name: name})
		match(t, err, locker.ErrNotAcquired)
		again, err := b.Acquire(t.Context(), locker.Request{Name: name, Owner: lock.Owner()})
		match(t, err)
		ctx, cancel := lock.Context(t.Context())
		defer cancel()
		third, err := b.Acquire(ctx, locker.Request{Name: name})
		match(t, err)
		release(t, lock, third, again)
		b.free(t)
	})
}

// The owner in ctx is validated like the one in the Request.
func TestOwnerOfContextTooLong(t *testing.T) {
	run(t, func(t *testing.T, b bench) {
		ctx := locker.WithOwner(t.Context(), strings.Repeat("o", locker.MaxNameLen+1))
		_, err := b.Acquire(ctx, locker.Request{Name: name})
		match(t, err, locker.ErrInvalid)
		if b.drv.Sent() != 0 {
			t.Error("it was sent all the same")
		}
	})
}

// Owners are compared byte by byte.
func TestOwnersAreComparedWhole(t *testing.T) {
	run(t, func(t *testing.T, b bench) {
		for _, owner := range []string{"me", "kind", "\x00", "\xff\xfe", "a|b", "-1", strings.Repeat("o", locker.MaxNameLen)} {
			lock, err := b.Acquire(t.Context(), locker.Request{Name: name, Owner: owner})
			match(t, err)
			for _, other := range []string{owner[:len(owner)-1] + "x", owner[1:] + "y", strings.ToUpper(owner) + " "} {
				if len(other) > locker.MaxNameLen {
					other = other[:locker.MaxNameLen-1]
				}
				_, err = b.Acquire(t.Context(), locker.Request{Name: name, Owner: other})
				match(t, err, locker.ErrNotAcquired)
			}
			if held := b.refusal(t); held.Owner != owner {
				t.Errorf("held by %q, want %q", held.Owner, owner)
			}
			release(t, lock)
		}
	})
}

// Nested work re-enters by its ctx. Each of its other names has an owner of its own.
func TestDoInsideDo(t *testing.T) {
	run(t, func(t *testing.T, b bench) {
		req := locker.Request{Name: name}
		err := locker.Do(t.Context(), b, req, func(ctx context.Context, outer *locker.Lock) error {
			if err := locker.Do(ctx, b, req, func(_ context.Context, inner *locker.Lock) error {
				if inner.Owner() != outer.Owner() {
					t.Errorf("nested by %q in %q", inner.Owner(), outer.Owner())
				}
				b.refused(t)
				b.holds(t, 2)
				return nil
			}); err != nil {
				return err
			}
			b.refused(t)

			// Two parts of the work at once: the same other name excludes one of them.
			locks := make(chan *locker.Lock, 2)
			var wg sync.WaitGroup
			for range 2 {
				wg.Go(func() {
					lock, err := b.Acquire(ctx, locker.Request{Name: "other"})
					if err != nil {
						match(t, err, locker.ErrNotAcquired)
						return
					}
					locks <- lock
				})
			}
			wg.Wait()
			if len(locks) != 1 {
				t.Errorf("%d parts of the work hold the other name", len(locks))
			}
			lock := <-locks
			if lock.Owner() == outer.Owner() {
				t.Error("the other name has the same owner")
			}
			return lock.Release(ctx)
		})
		match(t, err)
		b.free(t)
	})
}

// One owner enters from many goroutines at the same time, also past waiters.
func TestWaiting(t *testing.T) {
	run(t, func(t *testing.T, b bench) {
		l := locker.Chain(b.Locker, locker.Must(retry.New(retry.Config{})))
		outer := b.me(t, locker.Request{TTL: time.Minute})
		waited := make(chan time.Duration, 1)
		start := time.Now()
		go func() {
			lock, err := l.Acquire(context.Background(), locker.Request{Name: name, Owner: "you"})
			match(t, err)
			waited <- time.Since(start)
			release(t, lock)
		}()
		synctest.Wait()
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				lock, err := l.Acquire(t.Context(), locker.Request{Name: name, Owner: "me"})
				match(t, err)
				sleep(5 * time.Second)
				release(t, lock)
			})
		}
		wg.Wait()
		release(t, outer)
		if got := <-waited; got != 5*time.Second {
			t.Errorf("the waiter got in after %v, want the release after 5s", got)
		}
		synctest.Wait()
		b.free(t)
	})
}

// Operations without support end in errors.ErrUnsupported.
func TestUnsupported(t *testing.T) {
	run(t, func(t *testing.T, b bench) {
		_, err := b.Acquire(t.Context(), locker.Request{Name: name, Mode: locker.Shared})
		match(t, err, errors.ErrUnsupported)
		lock := b.me(t, locker.Request{})
		match(t, lock.Downgrade(t.Context()), errors.ErrUnsupported)
		match(t, lock.Upgrade(t.Context()), errors.ErrUnsupported)
		release(t, lock)
	})
}

func TestBadConfig(t *testing.T) {
	run(t, func(t *testing.T, b bench) {
		_, err := reentrant.New(nil, reentrant.Config{})
		match(t, err, locker.ErrInvalid)
		for _, cfg := range []reentrant.Config{
			{TTL: -1}, {TTL: time.Millisecond}, {TTL: locker.MaxTTL + 1}, {AttemptTimeout: time.Microsecond},
			{Prefix: strings.Repeat("p", locker.MaxNameLen+1)},
		} {
			_, err := reentrant.New(b.drv, cfg)
			match(t, err, locker.ErrInvalid)
			if err != nil && !strings.Contains(err.Error(), "reentrant.Config.") {
				t.Errorf("%v does not name the field", err)
			}
		}
	})
}
