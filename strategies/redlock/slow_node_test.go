package redlock_test

import (
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/strategies/redlock"
)

// overMinting is overHooked, of nodes that mint a token with each upgrade.
func overMinting(t *testing.T, c *hookedCluster, tops ...int64) {
	t.Helper()
	var lockers []locker.Locker
	for i, n := range c.n {
		lockers = append(lockers, &minting{hooked: n, top: tops[i]})
	}
	c.Locker = locker.Must(redlock.New(lockers, redlock.Config{}))
}

// Node 1 hangs when its counter is to be raised; node 2 is upgraded 10 ms after the others, and
// makes the quorum.
func TestFencedUpgradeWaitsForANodeLockThatIsBeingUpgraded(t *testing.T) {
	inHooked(t, 3, redlock.Config{}, func(t *testing.T, c *hookedCluster) {
		overMinting(t, c, 100, 0, 0)
		lock := c.take(t, locker.Request{Owner: "me", Mode: locker.Shared, Fenced: true})
		c.n[1].hook(slow(10*time.Second, "raise fence"), nil)
		c.n[2].hook(slow(10*ms, "convert"), nil)
		match(t, lock.Upgrade(t.Context()))
		match(t, lock.Release(t.Context()))
	})
}

// Node 2 answers an old renewal when it is to be upgraded: with that its lease ends before the
// Deadline.
func TestUpgradeRenewsBehindAnOlderRenewal(t *testing.T) {
	inHooked(t, 3, redlock.Config{}, func(t *testing.T, c *hookedCluster) {
		lock := c.take(t, locker.Request{Owner: "me", Mode: locker.Shared})
		c.n[2].hook(nil, slow(12*time.Second, "renew"))
		match(t, lock.Renew(t.Context(), 0)) // at 0 s
		sleep(10 * time.Second)
		match(t, lock.Renew(t.Context(), 0)) // at 10 s: to node 2 it is not sent
		sleep(1950 * ms)
		c.n[1].hook(slow(100*ms, "convert"), nil)
		match(t, lock.Upgrade(t.Context())) // at 11.95 s; node 2 answers at 12 s
		match(t, lock.Release(t.Context()))
	})
}

// A renewal during an upgrade promises what a shared hold has, which an exclusive one may not have.
func TestRenewalDuringAnUpgradePromisesNoMore(t *testing.T) {
	inHooked(t, 3, redlock.Config{}, func(t *testing.T, c *hookedCluster) {
		lock := c.take(t, locker.Request{Owner: "me", Mode: locker.Shared})
		c.n[2].Hold(locker.Request{Name: name, Owner: "reader", Mode: locker.Shared, TTL: 2 * time.Hour}) // it refuses the upgrade
		c.n[1].hook(slow(20*ms, "convert"), nil)
		upgraded := make(chan error, 1)
		go func() { upgraded <- lock.Upgrade(t.Context()) }()
		sleep(5 * ms)
		c.n[1].hook(slow(40*time.Second, "renew"), nil) // slow from here on
		_ = lock.Renew(t.Context(), time.Hour)          // that may fail: but what is promised is there
		match(t, <-upgraded)
		sleep(ms)
		n := 0
		for _, node := range c.n {
			s, _ := node.Inspect(bg, name)
			if s.Owner == "me" && s.Mode == locker.Exclusive && !time.Now().Add(s.Left).Before(lock.Deadline()) {
				n++
			}
		}
		if n < 2 {
			t.Errorf("the lock is %v until %v from now, and %d of 3 nodes are so", lock.Mode(), time.Until(lock.Deadline()), n)
		}
	})
}

// A renewal that answers nil has extended the lease, also while an upgrade comes between. No node
// takes longer than 50 ms.
func TestRenewalOverAnUpgradeExtends(t *testing.T) {
	inHooked(t, 5, redlock.Config{}, func(t *testing.T, c *hookedCluster) {
		lock := c.take(t, locker.Request{Owner: "me", Mode: locker.Shared})
		hookAll(c.n[1:3], slow(50*ms, "renew"), nil)
		c.n[3].hook(slow(30*ms, "convert"), nil)
		c.n[4].hook(slow(20*ms, "renew"), slow(5*ms, "convert"))
		upgraded := make(chan error, 1)
		go func() { upgraded <- lock.Upgrade(t.Context()) }()
		err := lock.Renew(t.Context(), time.Hour)
		match(t, <-upgraded)
		if left := time.Until(lock.Deadline()); err == nil && left < 50*time.Minute {
			t.Errorf("renewed for an hour, and %v are left", left)
		}
		sleep(time.Second)
		match(t, lock.Release(t.Context()))
	})
}

// The node locks of an upgrade that was refused are shared again when it says so: another reader
// shares them, and a resume finds what its Handle says.
func TestRightAfterARefusedUpgrade(t *testing.T) {
	inHooked(t, 3, redlock.Config{Quorum: 3}, func(t *testing.T, c *hookedCluster) {
		lock := c.take(t, locker.Request{Owner: "me", Mode: locker.Shared})
		reader := c.n[1].Hold(locker.Request{Name: name, Owner: "reader", Mode: locker.Shared, TTL: time.Hour})
		hookAll(c.n, slow(2*ms, "convert"), nil)
		match(t, lock.Upgrade(t.Context()), locker.ErrNotAcquired)
		next, err := locker.Resume(t.Context(), c, lock.Handle())
		if match(t, err); err != nil {
			return
		}
		match(t, next.Upgrade(t.Context()), locker.ErrNotAcquired)
		other, err := c.Acquire(t.Context(), locker.Request{Name: name, TTL: ttl, Owner: "r2", Mode: locker.Shared})
		if match(t, err); err == nil {
			match(t, other.Release(t.Context()))
		}
		match(t, next.Release(t.Context()))
		match(t, reader.Release(bg))
	})
}

// A node hangs for longer than the TTL, and another later: no node ever said that what a Handle
// named is gone.
func TestHandleAndSlowNodesInTurn(t *testing.T) {
	inHooked(t, 3, redlock.Config{}, func(t *testing.T, c *hookedCluster) {
		lock := c.take(t, locker.Request{Owner: "me"})
		_ = lock.Handle()
		for i := range 2 {
			c.n[i].hook(slow(time.Minute, "renew"), nil)
			for range 20 {
				sleep(10 * time.Second)
				check.Must(t, lock.Renew(t.Context(), 0)) // the others held and renewed all the time
			}
			c.n[i].hook(nil, nil)
			for range 20 { // until all that was slow has been answered, and the lock is restored there
				sleep(10 * time.Second)
				check.Must(t, lock.Renew(t.Context(), 0))
			}
		}
		match(t, lock.Err())
	})
}

// Node 2 gives its shared node lock 1 ms after an upgrade was won. It joins, and so the lock
// outlasts node 0.
func TestSharedNodeLockAfterAnUpgradeJoins(t *testing.T) {
	inHooked(t, 3, redlock.Config{}, func(t *testing.T, c *hookedCluster) {
		c.n[2].hook(slow(ms, "acquire"), nil)
		lock := locker.Must(c.Acquire(t.Context(), locker.Request{Name: name, TTL: ttl, Owner: "me", Mode: locker.Shared}))
		match(t, lock.Upgrade(t.Context()))
		sleep(time.Second)
		c.n[2].hook(nil, nil)
		c.n[0].hook(slow(time.Minute, "renew"), nil)
		for range 4 {
			match(t, lock.Renew(t.Context(), 0))
			sleep(10 * time.Second)
		}
		match(t, lock.Err())
		match(t, lock.Release(t.Context()))
	})
}

// The release before it is 5 ms late at node 2, which refuses the acquire. Then node 0 hangs: the
// renewal that misses the quorum for that restores the lock at node 2.
func TestRenewalThatMissedTheQuorumRestores(t *testing.T) {
	inHooked(t, 3, redlock.Config{}, func(t *testing.T, c *hookedCluster) {
		lock := c.take(t, locker.Request{Owner: "me"})
		c.n[2].hook(slow(5*ms, "release"), nil)
		match(t, lock.Release(t.Context()))
		lock = locker.Must(c.Acquire(t.Context(), locker.Request{Name: name, TTL: ttl, Owner: "me"}))
		sleep(time.Second)
		c.n[2].hook(nil, nil)
		c.n[0].hook(slow(time.Minute, "renew"), nil)
		_ = lock.Renew(t.Context(), 0) // the first finds out
		for range 4 {
			sleep(7 * time.Second)
			match(t, lock.Renew(t.Context(), 0))
		}
		match(t, lock.Err())
	})
}

// Node 2 hangs in a renewal. No upgrade leaves a goroutine behind that waits for it.
func TestUpgradesLeaveNoGoroutinesBehind(t *testing.T) { //nolint:paralleltest // see below
	synctest.Test(t, func(t *testing.T) { // not beside other tests: it counts the goroutines of all
		defer sleep(time.Hour) // what is behind ends
		c := overHooked(t, 3, redlock.Config{})
		lock := c.take(t, locker.Request{Owner: "me", Mode: locker.Shared})
		c.n[2].hook(slow(20*time.Second, "renew"), nil)
		match(t, lock.Renew(t.Context(), time.Hour))
		before := runtime.NumGoroutine()
		for range 1000 {
			match(t, lock.Upgrade(t.Context()))
			match(t, lock.Downgrade(t.Context()))
		}
		synctest.Wait()
		check.AtMost(t, "goroutines more", runtime.NumGoroutine()-before, 100)
		match(t, lock.Release(t.Context()))
	})
}

// Node 3 answers the first renewal late, and the hold is taken over meanwhile: that answer does not
// make a quorum for the next renewal, which was called after.
func TestRenewalCountsNoAnswerFromBeforeIt(t *testing.T) {
	inHooked(t, 5, redlock.Config{}, func(t *testing.T, c *hookedCluster) {
		lock := c.take(t, locker.Request{Owner: "me"})
		c.n[3].hook(nil, slow(100*ms, "renew"))
		match(t, lock.Renew(t.Context(), 0))
		c.n[2].hook(slow(200*ms, "resume"), nil)
		c.n[4].hook(slow(200*ms, "resume"), nil)
		next := locker.Must(locker.Resume(t.Context(), c, lock.Handle()))
		c.n[3].hook(nil, nil)
		match(t, lock.Renew(t.Context(), 0), locker.ErrLost)
		match(t, next.Renew(t.Context(), 0))
		match(t, next.Release(t.Context()))
	})
}
