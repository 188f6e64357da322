package redlock_test

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/strategies/redlock"
)

// Node 2 is slow to give its node lock, and misses a long renewal and the downgrade: it is
// exclusive then, for a shorter time than the lock. It is renewed before it counts for an upgrade.
func TestUpgradeRenewsANodeLockThatCameLate(t *testing.T) {
	inHooked(t, 3, redlock.Config{}, func(t *testing.T, c *hookedCluster) {
		c.n[2].hook(slow(50*ms, "acquire"), fails(errDown, "convert"))
		lock := c.take(t, locker.Request{Owner: "me"})
		match(t, lock.Renew(t.Context(), time.Hour))
		match(t, lock.Downgrade(t.Context()))
		sleep(time.Second)
		c.n[2].hook(nil, nil)
		c.n[1].hook(fails(errDown, "convert"), nil)
		match(t, lock.Upgrade(t.Context()))
		c.n[1].hook(nil, nil)
		sleep(31 * time.Second)
		c.excludes(t, lock, "after an upgrade that won")
		match(t, lock.Release(t.Context()))
	})
}

// A node lock that joins a shared hold as an exclusive one is made shared at once: others are to
// share it there.
func TestLateNodeLockIsDowngraded(t *testing.T) {
	inHooked(t, 3, redlock.Config{}, func(t *testing.T, c *hookedCluster) {
		c.n[2].hook(slow(50*ms, "acquire"), nil)
		lock := c.take(t, locker.Request{Owner: "me"})
		match(t, lock.Downgrade(t.Context()))
		sleep(time.Second)
		for _, n := range c.n {
			locker.Must(n.Locker.Acquire(t.Context(), locker.Request{Name: name, TTL: ttl, Mode: locker.Shared, NoWait: true}))
		}
		match(t, lock.Release(t.Context()))
	})
}

// An upgrade waits for the downgrade that is under way at a node it needs, and no longer than
// AttemptTimeout.
func TestUpgradeWaitsForTheDowngradeBeforeIt(t *testing.T) {
	type test struct {
		takes time.Duration
		want  []error
	}
	eachInHooked(t, 3, redlock.Config{AttemptTimeout: time.Second}, map[string]test{
		"which ends":  {100 * ms, nil},
		"which hangs": {time.Minute / 4, []error{locker.ErrUnknownOutcome}},
	}, func(t *testing.T, c *hookedCluster, tt test) {
		lock := c.take(t, locker.Request{Owner: "me"})
		c.n[2].hook(slow(tt.takes, "convert"), nil)
		match(t, lock.Downgrade(t.Context()))
		c.n[1].hook(fails(errDown, "convert"), nil)
		start := time.Now()
		match(t, lock.Upgrade(t.Context()), tt.want...)
		tookAtMost(t, start, time.Second)
		hookAll(c.n[1:], nil, nil)
		match(t, lock.Release(t.Context()))
	})
}
