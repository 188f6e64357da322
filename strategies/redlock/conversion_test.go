package redlock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/strategies/redlock"
	"github.com/holdfast-go/holdfast/strategies/rwhash"
)

// If too few nodes for a quorum support conversions, the lock stays as it is, even if a node was
// converted or has not answered the acquire yet.
func TestUnsupportedConversions(t *testing.T) {
	type test struct {
		mode  locker.Mode
		nodes int           // without conversions
		late  time.Duration // of node 2's answer to the acquire
	}
	eachInMemory(t, 3, redlock.Config{}, map[string]test{
		"exclusive":                 {locker.Exclusive, 3, 0},
		"shared":                    {locker.Shared, 3, 0},
		"one node has not answered": {locker.Exclusive, 3, 10 * time.Second},
		"one node converts":         {locker.Exclusive, 2, 0},
	}, func(t *testing.T, c *cluster, tt test) {
		c.n[2].hook(slow(tt.late, "acquire"), nil)
		lock := c.acquire(locker.Request{Owner: "me", Mode: tt.mode})
		c.n[2].hook(nil, nil)
		hookAll(c.n[:tt.nodes], fails(errors.ErrUnsupported, "convert"), nil)
		for _, convert := range []func(context.Context) error{lock.Upgrade, lock.Downgrade} {
			only(t, convert(t.Context()), errors.ErrUnsupported, locker.ErrUnknownOutcome, locker.ErrNotHeld, locker.ErrNotAcquired)
			if lock.Mode() != tt.mode || lock.Err() != nil {
				t.Errorf("%v, Err %v after a conversion that is not supported", lock, lock.Err())
			}
		}
		sleep(tt.late)
		succeeds(t, lock.Renew(t.Context(), 0))
		c.heldBy("me", 3, "after the renewal")
		c.noneIs(locker.Exclusive + locker.Shared - tt.mode)
		c.excludes(lock, "after conversions that are not supported")
		match(t, lock.Release(t.Context()))
	})
}

// A node whose lease ends before the Deadline is renewed before its upgrade: the quorum may need
// it.
func TestUpgradeLastsUntilTheDeadline(t *testing.T) {
	inMemory(t, 3, redlock.Config{}, func(t *testing.T, c *cluster) {
		lock := c.acquire(locker.Request{Owner: "me", Mode: locker.Shared})
		c.n[2].hook(fails(errDown, "renew"), nil)
		match(t, lock.Renew(t.Context(), time.Hour))
		c.n[2].hook(nil, nil)
		c.n[1].hook(fails(errDown, "convert"), nil)
		succeeds(t, lock.Upgrade(t.Context()))
		check.Equal(t, "mode", lock.Mode(), locker.Exclusive)
		c.n[1].hook(nil, nil)
		sleep(31 * time.Second)
		c.excludes(lock, "after an upgrade that won")
	})
}

// An upgrade without a quorum is undone on each upgraded node, at once or with the next renewal.
func TestMissedUpgradeIsTakenBack(t *testing.T) {
	inMemory(t, 3, redlock.Config{}, func(t *testing.T, c *cluster) {
		lock := c.acquire(locker.Request{Owner: "me", Mode: locker.Shared})
		c.n[0].hook(nil, nil)
		for _, n := range c.n[1:] {
			n.Hold(locker.Request{Name: name, Owner: "reader", Mode: locker.Shared, TTL: time.Minute})
		}
		match(t, lock.Upgrade(t.Context()), locker.ErrNotAcquired)
		c.noneIs(locker.Exclusive)
		check.Equal(t, "mode after an upgrade that was refused", lock.Mode(), locker.Shared)
		asked := 0
		c.n[0].hook(func(what string) error { // executes the upgrade, not its undo
			if asked++; what == "convert" && asked > 1 {
				return errDown
			}
			return nil
		}, nil)
		match(t, lock.Upgrade(t.Context()), locker.ErrNotAcquired)
		synctest.Wait()
		if c.n[0].state().Mode != locker.Exclusive {
			t.Fatal("node 0 is meant to be left exclusive")
		}
		c.n[0].hook(nil, nil)
		succeeds(t, lock.Renew(t.Context(), 0))
		c.noneIs(locker.Exclusive)
		match(t, lock.Release(t.Context()))
	})
}

// A node missed by an upgrade does not count until a renewal has upgraded it; a node missed by a
// downgrade counts.
func TestRenewalConvertsWhatWasMissed(t *testing.T) {
	inMemory(t, 3, redlock.Config{}, func(t *testing.T, c *cluster) {
		lock := c.acquire(locker.Request{Owner: "me", Mode: locker.Shared})
		c.n[2].hook(fails(errDown, "convert"), nil)
		succeeds(t, lock.Upgrade(t.Context()))
		c.n[1].hook(fails(errDown, "renew"), nil)
		match(t, lock.Renew(t.Context(), 0), errDown) // node 0 alone is exclusive
		hookAll(c.n[1:], nil, nil)
		succeeds(t, lock.Renew(t.Context(), 0))
		c.noneIs(locker.Shared)
		hookAll(c.n[1:], fails(errDown, "convert"), nil)
		match(t, lock.Downgrade(t.Context()), locker.ErrUnknownOutcome, errDown)
		match(t, lock.Renew(t.Context(), 0))
		synctest.Wait() // the renewal has tried the downgrade again
		if lock.Mode() != locker.Shared || lock.Err() != nil {
			t.Errorf("%v after a downgrade that missed the quorum", lock)
		}
		hookAll(c.n[1:], nil, nil)
		succeeds(t, lock.Downgrade(t.Context())) // or the next renewal
		c.noneIs(locker.Exclusive)
		match(t, lock.Release(t.Context()))
	})
}

// Node 1 hangs as its counter is raised. Node 2 is upgraded 10 ms after the others, and completes
// the quorum.
func TestFencedUpgradeWaitsForANodeLockThatIsBeingUpgraded(t *testing.T) {
	inMemory(t, 3, redlock.Config{}, func(t *testing.T, c *cluster) {
		match(t, mint(c.n[0].Locker, 100))
		lock := c.acquire(locker.Request{Owner: "me", Mode: locker.Shared, Fenced: true})
		c.n[1].hook(slow(10*time.Second, "raise fence"), nil)
		c.n[2].hook(slow(10*ms, "convert"), nil)
		match(t, lock.Upgrade(t.Context()))
		match(t, lock.Release(t.Context()))
	})
}

// When a refused upgrade returns, its node locks are shared again, even at a node slow to upgrade:
// another reader shares them, and a resume finds what its Handle lists.
func TestRightAfterARefusedUpgrade(t *testing.T) {
	type test struct {
		takes time.Duration // the conversion of node 2
		want  error
	}
	eachInMemory(t, 3, redlock.Config{Quorum: 3}, map[string]test{
		"refused":          {2 * ms, locker.ErrNotAcquired},
		"one node is slow": {50 * ms, locker.ErrUnknownOutcome},
	}, func(t *testing.T, c *cluster, tt test) {
		lock := c.acquire(locker.Request{Owner: "me", Mode: locker.Shared})
		reader := c.n[1].Hold(locker.Request{Name: name, Owner: "reader", Mode: locker.Shared, TTL: time.Hour})
		hookAll(c.n[:2], slow(2*ms, "convert"), nil)
		c.n[2].hook(slow(tt.takes, "convert"), nil)
		match(t, lock.Upgrade(t.Context()), tt.want)
		next := locker.Must(locker.Resume(t.Context(), c, lock.Handle()))
		match(t, next.Upgrade(t.Context()), tt.want)
		other := locker.Must(c.Acquire(t.Context(), locker.Request{Name: name, TTL: ttl, Owner: "r2", Mode: locker.Shared}))
		for _, lock := range []*locker.Lock{other, next, reader} {
			match(t, lock.Release(t.Context()))
		}
	})
}

// AttemptTimeout bounds an upgrade and a renewal behind it. Two nodes hang in conversions, and
// renew at once.
func TestUpgradeIsBoundedByAttemptTimeout(t *testing.T) {
	inMemory(t, 3, redlock.Config{AttemptTimeout: time.Second}, func(t *testing.T, c *cluster) {
		lock := c.acquire(locker.Request{Owner: "me", Mode: locker.Shared})
		hookAll(c.n[1:], slow(10*time.Second, "convert"), nil)
		start := time.Now()
		done := make(chan time.Duration, 2)
		go func() { _ = lock.Upgrade(t.Context()); done <- time.Since(start) }()
		sleep(ms)
		match(t, lock.Renew(t.Context(), 0))
		renewed := time.Since(start)
		if up := <-done; up > time.Second || renewed > time.Second {
			t.Errorf("the upgrade took %v, the renewal %v, in which no node was slow", up, renewed)
		}
	})
}

// The token of an upgraded lock exceeds those of all earlier writers.
func TestUpgradeMintsAToken(t *testing.T) {
	check.InFakeTime(t, func(t *testing.T) {
		var nodes []locker.Locker
		for range 3 {
			drv := clients.OpenMemory(t, clients.NewMemory(t))
			nodes = append(nodes, locker.Must(rwhash.New(drv, rwhash.Config{})))
		}
		l := locker.Must(redlock.New(nodes, redlock.Config{}))
		writer := locker.Must(l.Acquire(t.Context(), locker.Request{Name: name, Fenced: true}))
		match(t, writer.Release(t.Context()))
		sleep(time.Second)
		lock := locker.Must(l.Acquire(t.Context(), locker.Request{Name: name, Fenced: true, Mode: locker.Shared}))
		sleep(time.Second)
		match(t, lock.Upgrade(t.Context()))
		if lock.Fence() <= writer.Fence() || lock.Mode() != locker.Exclusive {
			t.Errorf("%v with fence %d, after a writer with %d", lock, lock.Fence(), writer.Fence())
		}
		match(t, lock.Renew(t.Context(), 0))
		match(t, lock.Downgrade(t.Context()))
		beside := locker.Must(l.Acquire(t.Context(), locker.Request{Name: name, Mode: locker.Shared}))
		match(t, lock.Upgrade(t.Context()), locker.ErrNotAcquired)
		match(t, beside.Release(t.Context()))
		match(t, lock.Release(t.Context()))
		sleep(time.Minute) // background calls end
	})
}
