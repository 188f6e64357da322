package redlock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/effort"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/strategies/redlock"
)

// A node that is being asked may hold, so that the loss is not certain.
func TestReleaseIsNotLostWhileANodeIsAsked(t *testing.T) {
	inHooked(t, 3, redlock.Config{}, func(t *testing.T, c *hookedCluster) {
		c.n[2].hook(nil, slow(2*time.Second, "acquire")) // executed at once, answered late
		lock := c.take(t, locker.Request{Owner: "me"})
		c.n[1].Forget(name)
		if at := c.at("me"); len(at) != 2 {
			t.Fatalf("at %v", at)
		}
		err := lock.Release(t.Context())
		if errors.Is(err, locker.ErrLost) {
			t.Errorf("two of three nodes held it to the end, and release says: %v", err)
		}
		sleep(5 * time.Second)
	})
}

// A release does not wait for as long as the nodes like. Where its ctx has ended it waits for an
// AttemptTimeout in all, also where the answers that decide come late within that.
func TestReleaseIsBounded(t *testing.T) {
	t.Parallel()
	late := func(string) error { sleep(900 * ms); return errDown }
	hangs := slow(time.Minute, "release")
	for _, tt := range []struct {
		name      string
		hooks     []func(string) error
		left, max time.Duration // of ctx, and for the release
		want      error
	}{
		{"all hang", []func(string) error{hangs, hangs, hangs}, time.Minute, 2 * time.Second, locker.ErrUnknownOutcome},
		{"all hang, and ctx ends", []func(string) error{hangs, hangs, hangs}, 500 * ms, time.Second, locker.ErrUnknownOutcome},
		{"ctx has ended", []func(string) error{late, late, hangs}, 0, time.Second, errDown},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inHooked(t, 3, redlock.Config{}, func(t *testing.T, c *hookedCluster) {
				lock := c.take(t, locker.Request{Owner: "me"})
				for i, n := range c.n {
					n.hook(tt.hooks[i], nil)
				}
				ctx, cancel := context.WithTimeout(t.Context(), tt.left)
				defer cancel()
				start := time.Now()
				match(t, lock.Release(ctx), tt.want)
				if took := time.Since(start); took > tt.max {
					t.Errorf("with %v of ctx and an AttemptTimeout of 1 s it took %v", tt.left, took)
				}
			})
		})
	}
}

// Where nothing fails, whoever is late, what was renewed for an hour is gone from all nodes as soon
// as they have answered: no acquire and no renewal comes behind the release.
func TestReleaseOvertakesNothing(t *testing.T) {
	t.Parallel()
	const slowest = 700 * ms
	for seed := range effort.Of[uint64](50, 100, 300) {
		synctest.Test(t, func(t *testing.T) {
			dice := newDice(seed, 11)
			upTo := func(d time.Duration) time.Duration {
				if dice.upTo(3) > 0 { // most are quick, so that one is late beside them
					d /= 100
				}
				return dice.lasts(d)
			}
			c := overHooked(t, 3, redlock.Config{AttemptTimeout: time.Minute})
			for _, n := range c.n {
				late := func(string) error { sleep(upTo(slowest / 2)); return nil }
				n.hook(late, late)
			}
			for range 4 {
				lock, err := c.Acquire(t.Context(), locker.Request{Name: name, Fenced: true})
				if err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
				sleep(upTo(slowest))
				if seed%2 == 0 {
					c.n[dice.upTo(3)].Forget(name) // to be restored
				}
				match(t, lock.Renew(t.Context(), time.Hour))
				sleep(upTo(slowest))
				match(t, lock.Release(t.Context()))
				sleep(4 * slowest) // an acquire that has its answer raises the fence, and is undone then
				if nobodyHolds(t, c.n); t.Failed() {
					t.Fatalf("seed %d", seed)
				}
			}
		})
	}
}
