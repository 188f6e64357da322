package redlock_test

import (
	"context"
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
		c.wantAt(t, 2)
		matchNot(t, lock.Release(t.Context()), locker.ErrLost)
		sleep(5 * time.Second)
	})
}

// All nodes keep the name until the same time, also one that acquired late. A failed attempt leaves
// nothing.
func TestMinHoldOfNodes(t *testing.T) {
	inHooked(t, 3, redlock.Config{}, func(t *testing.T, c *hookedCluster) {
		const minHold = 10 * time.Second
		c.n[2].hook(slow(2*time.Second, "acquire"), nil)
		lock := c.take(t, locker.Request{Owner: "me", MinHold: minHold})
		end := time.Now().Add(minHold)
		sleep(3 * time.Second)
		match(t, lock.Release(t.Context()))
		sleep(time.Second)
		for i, n := range c.n {
			state, err := n.Inspect(t.Context(), name)
			if err != nil || !state.Held || state.Holds != 0 || state.Left != time.Until(end) {
				t.Errorf("node %d: %+v, %v; want the name kept for %v", i, state, err, time.Until(end))
			}
		}
		sleep(time.Until(end))
		hookAll(c.n[:2], fails(errDown, "acquire"), nil)
		_, err := c.Acquire(t.Context(), locker.Request{Name: name, MinHold: minHold})
		wantError(t, "an acquire at one of three nodes", err)
		sleep(time.Second)
		if state, err := c.n[2].Inspect(t.Context(), name); err != nil || state.Held {
			t.Errorf("a failed attempt left %+v, %v", state, err)
		}
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
		cfg       redlock.Config
		hooks     []func(string) error
		left, max time.Duration // of ctx, and for the release
		want      error
	}{
		{"all hang", redlock.Config{}, []func(string) error{hangs, hangs, hangs}, time.Minute, 2 * time.Second, locker.ErrUnknownOutcome},
		{"all hang, and ctx ends", redlock.Config{}, []func(string) error{hangs, hangs, hangs}, 500 * ms, time.Second, locker.ErrUnknownOutcome},
		{"ctx has ended", redlock.Config{}, []func(string) error{late, late, hangs}, 0, time.Second, errDown},
		{"a short ReleaseTimeout", redlock.Config{ReleaseTimeout: 300 * ms}, []func(string) error{hangs, hangs, hangs}, time.Minute, 300 * ms, locker.ErrUnknownOutcome},
		{"a short ReleaseTimeout, and ctx has ended", redlock.Config{ReleaseTimeout: 300 * ms}, []func(string) error{hangs, hangs, hangs}, 0, 300 * ms, locker.ErrUnknownOutcome},
		{"a long ReleaseTimeout", redlock.Config{ReleaseTimeout: 5 * time.Second}, []func(string) error{hangs, hangs, hangs}, time.Minute, 5 * time.Second, locker.ErrUnknownOutcome},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inHooked(t, 3, tt.cfg, func(t *testing.T, c *hookedCluster) {
				lock := c.take(t, locker.Request{Owner: "me"})
				for i, n := range c.n {
					n.hook(tt.hooks[i], nil)
				}
				ctx, cancel := context.WithTimeout(t.Context(), tt.left)
				defer cancel()
				start := time.Now()
				match(t, lock.Release(ctx), tt.want)
				tookAtMost(t, start, tt.max)
			})
		})
	}
}

// Where nothing fails, whoever is late, what was renewed for an hour is gone from all nodes as soon
// as they have answered: no acquire and no renewal comes behind the release.
func TestReleaseOvertakesNothing(t *testing.T) {
	t.Parallel()
	const slowest = 700 * ms
	for seed := range effort.Of[uint64](30, 30, 300) {
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
				lock := locker.Must(c.Acquire(t.Context(), locker.Request{Name: name, Fenced: true}))
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
