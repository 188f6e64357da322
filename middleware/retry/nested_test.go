//nolint:forbidigo // fake time
package retry_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/lockertest"
	"github.com/holdfast-go/holdfast/middleware/retry"
	strategy "github.com/holdfast-go/holdfast/strategies/reentrant"
	"github.com/holdfast-go/holdfast/strategies/semaphore"
)

const nestedName = "job"

// bounded is long enough to tell a wait from an answer at once.
func bounded() locker.Request {
	return locker.Request{Name: nestedName, TTL: time.Hour, MaxWait: time.Minute}
}

// isNested checks that err refuses a nested acquire, with everything it matches, and took no time
// since start.
func isNested(t *testing.T, lock *locker.Lock, err error, start time.Time) {
	t.Helper()
	held, ok := errors.AsType[*locker.ContentionError](err)
	if lock != nil || !ok || !held.Nested || held.Name != nestedName || !errors.Is(err, locker.ErrNested) || !errors.Is(err, locker.ErrNotAcquired) ||
		errors.Is(err, locker.ErrMaxWait) || driver.Transient(err) || !strings.Contains(err.Error(), "held by this call chain") ||
		!strings.HasSuffix(err.Error(), ": its ctx carries the hold; strategies/reentrant re-enters") {
		t.Errorf("a nested acquire got %v, %v", lock, err)
	}
	check.AtMost(t, "time that it took", time.Since(start), 0)
}

// nestedIn is a test under a hold.
type nestedIn struct {
	*testing.T
	server *lockertest.Locker
	l      locker.Locker // the Locker of the hold
	ctx    context.Context
	lock   *locker.Lock
}

// acquire makes a nested acquire under ctx.
func (t *nestedIn) acquire(ctx context.Context, change func(*locker.Request)) (*locker.Lock, error) {
	req := bounded()
	if change != nil {
		change(&req)
	}
	return t.l.Acquire(ctx, req)
}

// refused demands that a nested acquire under ctx is refused at once.
func (t *nestedIn) refused(ctx context.Context, change func(*locker.Request)) {
	t.Helper()
	start := time.Now()
	lock, err := t.acquire(ctx, change)
	isNested(t.T, lock, err, start)
}

// waits demands that an acquire under ctx waits until the hold is released, and gets the lock.
func (t *nestedIn) waits(ctx context.Context) {
	t.Helper()
	got := make(chan error)
	go func() {
		lock, err := t.acquire(ctx, nil)
		got <- errors.Join(err, lock.Release(context.Background()))
	}()
	synctest.Wait()
	check.OK(t, t.lock.Release(context.Background()))
	check.OK(t, <-got)
}

func shared(req *locker.Request)    { req.Mode = locker.Shared }
func exclusive(req *locker.Request) { req.Mode = locker.Exclusive }

// An acquire under a ctx with a hold of the lock fails at once if it could not succeed before the
// release; otherwise it waits.
func TestNested(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		outer func(*locker.Request)
		run   func(*nestedIn)
	}{
		"the ctx":               {nil, func(t *nestedIn) { t.refused(t.ctx, nil) }},
		"a ctx without its end": {nil, func(t *nestedIn) { t.refused(context.WithoutCancel(t.ctx), nil) }},
		"a goroutine": {nil, func(t *nestedIn) {
			start, ctx, done := time.Now(), context.WithValue(t.ctx, new(int), 1), make(chan struct{})
			go func() {
				defer close(done)
				lock, err := t.acquire(ctx, nil)
				isNested(t.T, lock, err, start)
			}()
			<-done
		}},
		"another hold below": {nil, func(t *nestedIn) {
			err := locker.Do(t.ctx, t.l, locker.Request{Name: "other"}, func(ctx context.Context, _ *locker.Lock) error {
				t.refused(ctx, nil)
				return nil
			})
			check.OK(t, err)
		}},
		"NoWait": {nil, func(t *nestedIn) { t.refused(t.ctx, func(req *locker.Request) { req.NoWait, req.MaxWait = true, 0 }) }},
		"Try": {nil, func(t *nestedIn) {
			start := time.Now()
			ran, err := locker.Try(t.ctx, t.l, bounded(), func(context.Context, *locker.Lock) error { return nil })
			if ran || err != nil || time.Since(start) > 0 {
				t.Errorf("Try returned %v, %v after %v", ran, err, time.Since(start))
			}
		}},
		"DoAll": {nil, func(t *nestedIn) {
			start := time.Now()
			err := locker.DoAll(t.ctx, t.l, []locker.Request{{Name: "a"}, bounded()}, func(context.Context, *locker.Locks) error { return nil })
			isNested(t.T, nil, err, start)
		}},
		"under DoAll": {nil, func(t *nestedIn) {
			err := locker.DoAll(context.Background(), t.l, []locker.Request{{Name: "a"}, {Name: "b"}}, func(ctx context.Context, _ *locker.Locks) error {
				for _, name := range []string{"a", "b"} {
					if _, err := t.acquire(ctx, func(req *locker.Request) { req.Name = name }); !errors.Is(err, locker.ErrNested) {
						t.Errorf("a nested acquire of %q got %v", name, err)
					}
				}
				return nil
			})
			check.OK(t, err)
		}},
		"an owner of its own": {nil, func(t *nestedIn) { t.refused(t.ctx, func(req *locker.Request) { req.Owner = "another" }) }},
		"behind waiters": {nil, func(t *nestedIn) {
			ctx, stop := context.WithCancel(context.Background())
			ended := make(chan struct{})
			for range 3 {
				go func() {
					_, _ = t.acquire(ctx, nil)
					ended <- struct{}{}
				}()
			}
			synctest.Wait()
			start := time.Now()
			for range 3 {
				go func() {
					lock, err := t.acquire(t.ctx, nil)
					isNested(t.T, lock, err, start)
					ended <- struct{}{}
				}()
			}
			for range 3 {
				<-ended
			}
			stop()
			for range 3 {
				<-ended
			}
		}},
		"around another retry": {nil, func(t *nestedIn) {
			t.l = wrap(t.T, t.l, retry.Config{})
			t.refused(t.ctx, nil)
		}},
		"shared under exclusive": {nil, func(t *nestedIn) { t.refused(t.ctx, shared) }},
		"exclusive under shared": {shared, func(t *nestedIn) {
			other := locker.Must(t.server.Acquire(context.Background(), locker.Request{Name: nestedName, Mode: locker.Shared, Owner: "other"}))
			t.refused(t.ctx, exclusive)
			_ = other.Release(context.Background())
		}},

		"shared under shared": {shared, func(t *nestedIn) {
			if lock, err := t.acquire(t.ctx, shared); err != nil || lock.Release(t.ctx) != nil {
				t.Errorf("a shared acquire under a shared hold got %v", err)
			}
		}},
		"another owner's ctx": {nil, func(t *nestedIn) { t.waits(locker.WithOwner(context.WithoutCancel(t.ctx), "another")) }},
		"no owner's ctx":      {nil, func(t *nestedIn) { t.waits(locker.WithOwner(context.WithoutCancel(t.ctx), "")) }},
		"no ctx of the hold":  {nil, func(t *nestedIn) { t.waits(context.Background()) }},
		"another name": {nil, func(t *nestedIn) {
			if lock, err := t.acquire(t.ctx, func(req *locker.Request) { req.Name = "other" }); err != nil || lock.Release(t.ctx) != nil {
				t.Errorf("another name got %v", err)
			}
		}},
		"another Locker": {nil, func(t *nestedIn) {
			server := lockertest.New()
			t.l = wrap(t.T, server, retry.Config{})
			t.lock = server.Hold(locker.Request{Name: nestedName, TTL: time.Hour})
			t.waits(t.ctx)
		}},
		"released": {nil, func(t *nestedIn) {
			_ = t.lock.Release(t.ctx)
			t.lock = t.server.Hold(locker.Request{Name: nestedName, TTL: time.Hour})
			t.waits(context.WithoutCancel(t.ctx))
		}},
		"released, with MinHold": {func(req *locker.Request) { req.MinHold = 30 * time.Second }, func(t *nestedIn) {
			_ = t.lock.Release(t.ctx)
			if lock, err := t.acquire(context.WithoutCancel(t.ctx), nil); err != nil || lock.Release(context.Background()) != nil {
				t.Errorf("the name that a minimum hold keeps got %v", err)
			}
		}},
		"lost": {nil, func(t *nestedIn) {
			t.server.Expire(nestedName)
			t.lock = t.server.Hold(locker.Request{Name: nestedName, TTL: time.Hour})
			t.waits(context.WithoutCancel(t.ctx))
		}},
		"lost and not known": {func(req *locker.Request) { req.Owner = "outer" }, func(t *nestedIn) {
			t.server.Forget(nestedName)
			t.lock = t.server.Hold(locker.Request{Name: nestedName, TTL: time.Hour, Owner: "next"})
			t.waits(context.WithoutCancel(t.ctx))
		}},
		"a resume": {nil, func(t *nestedIn) {
			lock, err := locker.Resume(t.ctx, t.l, t.lock.Handle())
			if err != nil || lock.Release(context.Background()) != nil {
				t.Errorf("Resume got %v", err)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				server := lockertest.New()
				l := wrap(t, server, retry.Config{})
				req := bounded()
				if tt.outer != nil {
					tt.outer(&req)
				}
				lock := locker.Must(l.Acquire(t.Context(), req))
				ctx, cancel := lock.Context(t.Context())
				defer cancel()
				tt.run(&nestedIn{t, server, l, ctx, lock})
				_ = lock.Release(t.Context())
			})
		})
	}
}

// A reentrant lock is re-entered, also behind waiters. Another owner's request under its ctx would
// wait for its own call chain, and is refused.
func TestNestedReentrant(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := wrap(t, locker.Must(strategy.New(clients.OpenMemory(t, clients.NewMemory(t)), strategy.Config{})), retry.Config{})
		waiting, ended := make(chan error), context.Background()
		err := locker.Do(t.Context(), l, bounded(), func(ctx context.Context, _ *locker.Lock) error {
			for range 2 {
				go func() {
					waiting <- locker.Do(ended, l, bounded(), func(context.Context, *locker.Lock) error { return nil })
				}()
			}
			time.Sleep(time.Second)
			start := time.Now()
			lock, err := l.Acquire(ctx, locker.Request{Name: nestedName, MaxWait: time.Minute, Owner: "another"})
			isNested(t, lock, err, start)
			return locker.Do(ctx, l, bounded(), func(ctx context.Context, _ *locker.Lock) error {
				return locker.Do(ctx, l, bounded(), func(context.Context, *locker.Lock) error { return nil })
			})
		})
		check.OK(t, errors.Join(err, <-waiting, <-waiting))
	})
}

// A second permit of a semaphore may become free though the call chain holds the first one. With
// one permit it cannot.
func TestNestedSemaphore(t *testing.T) {
	t.Parallel()
	for permits, nested := range map[int]bool{1: true, 2: false} {
		synctest.Test(t, func(t *testing.T) {
			drv := clients.OpenMemory(t, clients.NewMemory(t))
			l := wrap(t, locker.Must(semaphore.New(drv, semaphore.Config{Permits: permits})), retry.Config{})
			for range permits - 1 {
				other := locker.Must(l.Acquire(t.Context(), bounded()))
				defer func() { _ = other.Release(context.Background()) }()
			}
			err := locker.Do(t.Context(), l, bounded(), func(ctx context.Context, _ *locker.Lock) error {
				_, err := l.Acquire(ctx, bounded())
				return err
			})
			if errors.Is(err, locker.ErrNested) != nested || errors.Is(err, locker.ErrMaxWait) == nested {
				t.Errorf("%d permits: %v", permits, err)
			}
		})
	}
}

// A request nested in a hold that ends during its attempt queues like any other.
func TestNestedInAHoldThatEnds(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		l := wrap(t, s, retry.Config{Policy: constant(time.Hour)})
		outer := locker.Must(l.Acquire(t.Context(), locker.Request{Name: name}))
		ctx, cancel := outer.Context(t.Context())
		defer cancel()
		second := s.begin(t.Context(), l, locker.Request{Note: "second"})
		s.answer = func(_ int, req locker.Request) error {
			if req.Note == "nested" {
				elapse(ms)
			}
			return nil
		}
		nested := s.begin(context.WithoutCancel(ctx), l, locker.Request{Note: "nested"})
		check.OK(t, outer.Release(t.Context()))
		elapse(2 * ms)
		third := s.begin(t.Context(), l, locker.Request{Note: "third"})
		for _, next := range []*result{second, nested, third} {
			synctest.Wait()
			next.mustLock(t)
			check.OK(t, next.lock.Release(t.Context()))
			elapse(2 * ms)
		}
	})
}
