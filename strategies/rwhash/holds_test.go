//realtime:ok each test runs in a bubble, by run of tools_test.go

package rwhash_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/strategies/internal/locktest"
	"github.com/holdfast-go/holdfast/strategies/keylock"
	"github.com/holdfast-go/holdfast/strategies/rwhash"
)

// Holds without a release do not accumulate while readers enter.
func TestDeadHoldsAreRemoved(t *testing.T) {
	run(t, func(t *testing.T, b bench) {
		outer := b.read(t, locker.Request{TTL: 24 * time.Hour})
		for range 200 {
			b.read(t, locker.Request{TTL: 10 * time.Millisecond})
			sleep(10 * time.Millisecond)
		}
		keys, _ := b.m.HKeys(name)
		check.AtMost(t, "fields for one live hold", len(keys), 100)
		release(t, outer)
		b.free(t)
	})
}

func TestBadConfig(t *testing.T) {
	run(t, func(t *testing.T, b bench) {
		locktest.BadConfig(t, "rwhash", func(cfg keylock.Config) error {
			_, err := rwhash.New(b.drv, rwhash.Config{Prefix: cfg.Prefix, TTL: cfg.TTL, AttemptTimeout: cfg.AttemptTimeout})
			return err
		})
		match(t, check.ErrOf(rwhash.New(nil, rwhash.Config{})), locker.ErrInvalid)
		for _, turn := range []time.Duration{-1, time.Millisecond, time.Hour + 1} {
			_, err := rwhash.New(b.drv, rwhash.Config{WriterTurn: turn})
			if invalid, ok := errors.AsType[*locker.InvalidError](err); !ok || invalid.What != "rwhash.Config.WriterTurn" {
				t.Errorf("WriterTurn %v: %v", turn, err)
			}
		}
	})
}

// After a long hold has ended, the key does not outlive its holds by much.
func TestKeyEndsWithItsHolds(t *testing.T) {
	eachRun(t, map[string]int{"few": 20, "many": 100}, func(t *testing.T, b bench, n int) {
		long := b.read(t, locker.Request{TTL: 24 * time.Hour})
		for range n {
			b.read(t, locker.Request{TTL: time.Second})
		}
		release(t, long)
		for range n {
			b.read(t, locker.Request{TTL: time.Second})
		}
		sleep(time.Second)
		b.free(t)
	})
}

// Concurrent operations on one Lock leave nothing behind.
func TestAllOperationsAtOnce(t *testing.T) {
	run(t, func(t *testing.T, b bench) {
		for range 20 {
			lock := b.read(t, locker.Request{Fenced: true})
			var wg sync.WaitGroup
			for i := range 4 {
				wg.Go(func() { _ = lock.Upgrade(t.Context()) })
				wg.Go(func() { _ = lock.Downgrade(t.Context()) })
				wg.Go(func() { _ = lock.Renew(t.Context(), 0) })
				wg.Go(func() { _, _ = lock.Handle(), lock.Fence() })
				if i == 3 {
					wg.Go(func() { match(t, lock.Release(t.Context())) })
				}
			}
			wg.Wait()
			b.free(t)
		}
	})
}

// An upgrade with an unknown outcome was executed, and the counter is gone since. The next upgrade
// finds nothing to do, and the writer still gets a new token.
func TestUpgradeOfUnknownOutcomeIsFenced(t *testing.T) {
	run(t, func(t *testing.T, b bench) {
		release(t, b.write(t, locker.Request{Fenced: true}))
		lock := b.read(t, locker.Request{Fenced: true, TTL: time.Hour})
		token := lock.Fence()
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		b.drv.Then(fault{Lose: true}, fault{Hang: true})
		match(t, lock.Upgrade(ctx), locker.ErrUnknownOutcome)
		b.m.Del(counter)
		match(t, lock.Upgrade(t.Context()))
		check.Equal(t, "mode", lock.Mode(), locker.Exclusive)
		check.AtLeast(t, "token", lock.Fence(), token+1)
		release(t, lock)
	})
}
