package redlock_test

import (
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/strategies/redlock"
)

// A node where the lock is restored gets a lease until the Deadline, even if a renewal asks for a
// shorter one.
func TestRestoredNodesLastUntilTheDeadline(t *testing.T) {
	inHooked(t, 3, redlock.Config{}, func(t *testing.T, c *hookedCluster) {
		lock := c.take(t, locker.Request{Owner: "me"})
		match(t, lock.Renew(t.Context(), time.Hour))
		for _, i := range []int{0, 1} {
			c.n[i].Forget(name)
			succeeds(t, lock.Renew(t.Context(), 0))
		}
		match(t, lock.Renew(t.Context(), 0)) // all is restored and counts
		sleep(31 * time.Second)
		c.excludes(t, lock, "after two nodes were restored")
	})
}

// Renewals beside a node that hangs leave no goroutines, and nothing is left after the release.
func TestRenewalsDoNotPileUp(t *testing.T) { //nolint:paralleltest // see below
	synctest.Test(t, func(t *testing.T) { // not beside other tests: it counts the goroutines of all
		c := newCluster(t, 3, redlock.Config{})
		lock := c.acquire(locker.Request{})
		synctest.Wait()
		c.nodes[2].freeze()
		before := runtime.NumGoroutine()
		for range 500 {
			sleep(time.Second)
			match(t, lock.Renew(t.Context(), 0))
		}
		synctest.Wait()
		check.AtMost(t, "goroutines more, after 500 renewals past a node that hangs", runtime.NumGoroutine()-before, 50)
		match(t, lock.Release(t.Context()))
		sleep(time.Hour)
		check.AtMost(t, "goroutines more, an hour after the release", runtime.NumGoroutine()-before, 50) // ctxs that never end
		c.nodes[2].melt()
		synctest.Wait()
	})
}

// A renewal of a lost node lock that hangs does not block renewals of the node lock that replaced
// it.
func TestRestoredNodeLockIsRenewedByItself(t *testing.T) {
	inHooked(t, 3, redlock.Config{}, func(t *testing.T, c *hookedCluster) {
		lock := c.take(t, locker.Request{Owner: "me"})
		c.n[0].hook(slow(20*time.Second, "renew"), nil) // one renewal hangs
		succeeds(t, lock.Renew(t.Context(), 0))
		c.n[0].Forget(name)
		succeeds(t, lock.Downgrade(t.Context())) // which finds that there is nothing
		c.n[0].hook(nil, nil)
		succeeds(t, lock.Renew(t.Context(), 0)) // restores it
		c.wantAt(t, 3)
		c.n[1].hook(fails(errDown, "renew"), nil) // from now on node 0, which is well, decides
		match(t, lock.Renew(t.Context(), 0))
		sleep(30 * time.Second)
	})
}

// A node lock that has ended before the quorum is there does not count for it.
func TestNodeLockThatEndsWhileGathering(t *testing.T) {
	inHooked(t, 3, redlock.Config{}, func(t *testing.T, c *hookedCluster) {
		c.n[1].hook(slow(100*ms, "acquire"), nil)
		c.n[2].hook(fails(errDown, "acquire"), nil)
		time.AfterFunc(50*ms, func() { c.n[0].Expire(name) })
		if lock, err := c.Acquire(t.Context(), locker.Request{Name: name, TTL: ttl, Owner: "me"}); err == nil {
			c.n[2].hook(nil, nil)
			c.excludes(t, lock, "after a node lock had ended before the quorum was won")
		}
	})
}

// If nodes lose the lock, it ends with the quorum of the others, even without a call.
func TestLockEndsWithItsQuorum(t *testing.T) {
	inHooked(t, 3, redlock.Config{}, func(t *testing.T, c *hookedCluster) {
		lock := c.take(t, locker.Request{Owner: "me"})
		start := time.Now()
		c.n[2].hook(fails(errDown, "renew"), nil)
		match(t, lock.Renew(t.Context(), time.Hour)) // at nodes 0 and 1
		c.n[0].Forget(name)
		c.n[0].hook(fails(errDown, "acquire"), nil)
		if err := lock.Renew(t.Context(), 0); err == nil || errors.Is(err, locker.ErrNotHeld) {
			t.Errorf("nodes 1 and 2 hold, and one was renewed: %v", err)
		}
		<-lock.Done()
		took(t, start, ttl) // with node 2
		match(t, lock.Err(), locker.ErrLost)
	})
}

// A renewal that restores the quorum in time keeps the Lock.
func TestRenewalKeepsALockWhoseQuorumEnds(t *testing.T) {
	inHooked(t, 3, redlock.Config{}, func(t *testing.T, c *hookedCluster) {
		lock := c.take(t, locker.Request{Owner: "me"})
		c.n[2].hook(fails(errDown, "renew"), nil)
		match(t, lock.Renew(t.Context(), time.Hour))
		c.n[0].Forget(name)
		_ = lock.Renew(t.Context(), 0)
		c.n[2].hook(nil, nil)
		match(t, lock.Renew(t.Context(), 0))
		sleep(30 * time.Minute)
		match(t, lock.Err())
		c.excludes(t, lock, "half an hour later")
		match(t, lock.Release(t.Context()))
	})
}

// A quorum that finds its lock lost closes Done at once, whichever call found it.
func TestCertainLossIsReportedAtOnce(t *testing.T) {
	inHooked(t, 3, redlock.Config{}, func(t *testing.T, c *hookedCluster) {
		lock := c.take(t, locker.Request{Owner: "me", Fenced: true})
		c.n[0].Forget(name)
		c.n[1].Forget(name)
		renewPast(lock)
		synctest.Wait()
		check.Equal(t, "Done is closed, once two of three nodes said that it is gone", check.Closed(lock.Done()), true)
		match(t, lock.Err(), locker.ErrLost)
	})
}

// A renewal that is answered past the Deadline finds a Lock that is lost, and restores nothing for
// it.
func TestRenewalPastTheDeadlineRestoresNothing(t *testing.T) {
	inHooked(t, 3, redlock.Config{AttemptTimeout: time.Minute}, func(t *testing.T, c *hookedCluster) {
		lock := c.take(t, locker.Request{Owner: "me", TTL: time.Hour})
		succeeds(t, lock.Renew(t.Context(), time.Second)) // the nodes are asked for more than is left, for the drift
		c.n[2].Forget(name)
		sleep(time.Until(lock.Deadline()) - 50*ms)
		hookAll(c.n, nil, slow(100*ms, "renew"))
		match(t, lock.Renew(t.Context(), 0), locker.ErrLost)
		synctest.Wait()
		check.AtMost(t, "nodes of a Lock that is lost", len(c.at("me")), 2)
		_ = lock.Release(t.Context())
	})
}

// A node lock that ended by the local clock may be extended at its node, by a renewal whose answer
// was lost: it is released, so that the lock can be restored there and nothing stays behind.
func TestNodeLockWhoseRenewalWasLostIsReleased(t *testing.T) {
	inHooked(t, 3, redlock.Config{}, func(t *testing.T, c *hookedCluster) {
		lock := c.take(t, locker.Request{Owner: "me"})
		c.n[2].hook(nil, fails(errDown, "renew")) // executed, and not answered
		match(t, lock.Renew(t.Context(), time.Hour))
		sleep(ttl + time.Second) // the lock of node 2 is over, by all that is known
		c.n[2].hook(nil, nil)
		succeeds(t, lock.Renew(t.Context(), time.Hour))
		succeeds(t, lock.Renew(t.Context(), time.Hour))
		c.n[0].hook(fails(errDown, "renew"), nil) // from now on node 2 decides
		match(t, lock.Renew(t.Context(), time.Hour))
		c.n[0].hook(nil, nil)
		succeeds(t, lock.Release(t.Context()))
		c.wantAt(t, 0)
	})
}
