package lockertest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/locker/lockertest"
	"github.com/holdfast-go/holdfast/middleware/retry"
)

// whenWoken is a retry that tries again only after a wake-up, or at the end of the lease.
func whenWoken(l locker.Locker) locker.Locker {
	policy := func() backoff.BackOff { return backoff.NewConstantBackOff(24 * time.Hour) }
	return locker.Must(retry.New(retry.Config{Policy: policy}))(l)
}

// Whatever frees a name wakes its waiters, in every process.
func TestWakeUps(t *testing.T) {
	t.Parallel()
	check.EachInFakeTime(t, map[string]func(*lockertest.Locker, *locker.Lock){
		"Release": func(_ *lockertest.Locker, lock *locker.Lock) { _ = lock.Release(context.Background()) },
		"ReleaseHandle": func(l *lockertest.Locker, lock *locker.Lock) {
			_ = l.ReleaseHandle(context.Background(), lock.Handle())
		},
		"Expire": func(l *lockertest.Locker, _ *locker.Lock) { l.Expire("a") },
		"Forget": func(l *lockertest.Locker, _ *locker.Lock) { l.Forget("a") },
		"a release in an outage that is over": func(l *lockertest.Locker, lock *locker.Lock) {
			l.SetOutage(lockertest.Refused)
			_ = lock.Release(context.Background())
			l.SetOutage(lockertest.NoOutage)
		},
	}, func(t *testing.T, free func(*lockertest.Locker, *locker.Lock)) {
		l, start := lockertest.New(), time.Now()
		held := l.Hold(locker.Request{Name: "a", TTL: time.Hour})
		done := make(chan error)
		for range 2 {
			go func() {
				done <- locker.Do(t.Context(), whenWoken(l), locker.Request{Name: "a"}, func(context.Context, *locker.Lock) error { return nil })
			}()
		}
		synctest.Wait()
		free(l, held)
		check.Error(t, "first waiter", <-done)
		check.Error(t, "second waiter", <-done)
		check.AtMost(t, "time until the waiters were done", time.Since(start), time.Second)
	})
}

// A waiting writer keeps new readers out for five seconds; then they get in for as long.
func TestReadersAndWritersTakeTurns(t *testing.T) {
	check.InFakeTime(t, func(t *testing.T) {
		l := lockertest.New()
		reader := locker.Request{Name: "a", Mode: locker.Shared, TTL: time.Hour, NoWait: true}
		acquire(t, l, reader)
		waits := lease.WithWaiting(t.Context(), lease.Waiting{ID: "w", Since: time.Now(), Subscribed: true})
		for half := range 38 {
			_, err := l.Acquire(waits, locker.Request{Name: "a"})
			var held *locker.ContentionError
			if !errors.As(err, &held) {
				t.Fatalf("a writer beside a reader: %v", err)
			}
			check.Advance(250 * time.Millisecond)
			lock, err := l.Acquire(t.Context(), reader)
			refused := errors.Is(err, locker.ErrNotAcquired)
			check.Equal(t, fmt.Sprintf("a reader is refused after %d half seconds", half), refused, half%20 < 10)
			if err == nil {
				release(t, lock)
			} else if !errors.As(err, &held) || held.RetryAfter <= 0 {
				t.Errorf("the refusal of a reader: %v", err)
			}
			check.Advance(250 * time.Millisecond)
		}
		l.Leave("a", "w", func() {})
		release(t, acquire(t, l, reader)) // the writer has given up
	})
}

// Permits left over by a woken waiter are for the next one, at once.
func TestReleaseWakesAllWhoFit(t *testing.T) {
	check.InFakeTime(t, func(t *testing.T) {
		l := lockertest.NewSemaphore(3)
		all := l.Hold(locker.Request{Name: "a", Permits: 3, TTL: time.Hour})
		acquired := make(chan error)
		for range 3 {
			go func() {
				_, err := whenWoken(l).Acquire(t.Context(), locker.Request{Name: "a", TTL: time.Hour})
				acquired <- err
			}()
		}
		check.Advance(time.Second)
		start := time.Now()
		release(t, all)
		for range 3 {
			check.Error(t, "Acquire", <-acquired)
		}
		check.Took(t, "the waiters' acquires", start, 0)
	})
}

// A waiter tries again after an outage during its attempt.
func TestWaiterOutlivesAnOutage(t *testing.T) {
	t.Parallel()
	check.EachInFakeTime(t, outages, func(t *testing.T, kind lockertest.Outage) {
		l := lockertest.New()
		l.Hold(locker.Request{Name: "a", TTL: 10 * time.Second})
		acquired := make(chan error)
		go func() {
			_, err := whenWoken(l).Acquire(t.Context(), locker.Request{Name: "a"})
			acquired <- err
		}()
		check.Advance(time.Second)
		l.SetOutage(kind)
		check.Advance(20 * time.Second)
		start := time.Now()
		l.SetOutage(lockertest.NoOutage)
		check.Error(t, "Acquire", <-acquired)
		check.Took(t, "the acquire after the outage", start, 0)
	})
}
