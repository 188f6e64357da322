package redlock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/strategies/redlock"
	"github.com/holdfast-go/holdfast/strategies/watchdog"
)

// If nodes lose the lock, it ends with the quorum of the others, even without a call.
func TestLockEndsWithItsQuorum(t *testing.T) {
	inMemory(t, 3, redlock.Config{}, func(t *testing.T, c *cluster) {
		lock := c.acquire(locker.Request{Owner: "me"})
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

// A closed node does not stop the watchdog while the others are a quorum: node 0 is restored.
func TestClosedNodeDoesNotStopTheWatchdog(t *testing.T) {
	inMemory(t, 3, redlock.Config{}, func(t *testing.T, c *cluster) {
		renewed := locker.Chain(c.Locker, locker.Must(watchdog.New(watchdog.Config{})))
		lock := locker.Must(renewed.Acquire(t.Context(), locker.Request{Name: name, TTL: ttl, Owner: "me"}))
		synctest.Wait()
		c.n[2].hook(fails(locker.ErrClosed, "acquire", "renew"), nil)
		c.n[0].Forget(name)
		sleep(2 * ttl)
		match(t, lock.Err())
		c.heldBy("me", 2, "after two TTLs")
		match(t, lock.Release(t.Context()))
	})
}

// If a quorum finds its lock lost, Done closes at once, whichever call found it.
func TestCertainLossIsReportedAtOnce(t *testing.T) {
	inMemory(t, 3, redlock.Config{}, func(t *testing.T, c *cluster) {
		lock := c.acquire(locker.Request{Owner: "me", Fenced: true})
		c.n[0].Forget(name)
		c.n[1].Forget(name)
		lock.Hold().Wrap(func(inner lease.Lease) lease.Lease { // past the Lock, so it does not learn the outcome
			_, _ = inner.Do(bg, lease.Op{Kind: lease.OpRenew})
			return inner
		})
		synctest.Wait()
		check.Equal(t, "Done is closed, once two of three nodes said that it is gone", check.Closed(lock.Done()), true)
		match(t, lock.Err(), locker.ErrLost)
	})
}

// A renewal answered past the Deadline finds its Lock lost, and restores nothing for it.
func TestRenewalPastTheDeadlineRestoresNothing(t *testing.T) {
	inMemory(t, 3, redlock.Config{AttemptTimeout: time.Minute}, func(t *testing.T, c *cluster) {
		lock := c.acquire(locker.Request{Owner: "me", TTL: time.Hour})
		succeeds(t, lock.Renew(t.Context(), time.Second)) // asks the nodes for more than the rest of the lease, for the drift
		c.n[2].Forget(name)
		sleep(time.Until(lock.Deadline()) - 50*ms)
		hookAll(c.n, nil, slow(100*ms, "renew"))
		match(t, lock.Renew(t.Context(), 0), locker.ErrLost)
		synctest.Wait()
		check.AtMost(t, "nodes of a Lock that is lost", len(c.at("me")), 2)
		_ = lock.Release(t.Context())
	})
}

// oneIsLost demands that old, the Lock of a hold taken over, is lost soon, and that next renews.
func oneIsLost(t *testing.T, old, next *locker.Lock) {
	t.Helper()
	for range 20 {
		err := old.Renew(t.Context(), 0)
		match(t, next.Renew(t.Context(), 0))
		if err != nil {
			match(t, err, locker.ErrLost)
			return
		}
		sleep(10 * time.Second)
	}
	t.Errorf("200 s after the resume both Locks of one hold renew: %v, %v", old.Err(), next.Err())
}

// Node 0 fails renewals: its lease ends by the local clock after a resume has taken it over. Node
// 1, taken over too, is slow to report it.
func TestWhatWasTakenOverIsLost(t *testing.T) {
	inMemory(t, 3, redlock.Config{AttemptTimeout: time.Second}, func(t *testing.T, c *cluster) {
		old := c.acquire(locker.Request{Owner: "me", Mode: locker.Shared, TTL: 30 * time.Second})
		handle := old.Handle()
		c.n[0].hook(fails(errDown, "renew"), nil)
		for range 2 {
			sleep(10 * time.Second)
			match(t, old.Renew(t.Context(), 0))
		}
		sleep(9 * time.Second) // 29 s
		c.n[2].hook(fails(errDown, "resume"), nil)
		next := locker.Must(locker.Resume(t.Context(), c, handle)) // by nodes 0 and 1
		c.n[2].hook(nil, nil)
		sleep(2 * time.Second) // 31 s
		c.n[1].hook(slow(1500*ms, "renew"), nil)
		_ = old.Renew(t.Context(), 0)
		hookAll(c.n[:2], nil, nil)
		sleep(time.Second)
		oneIsLost(t, old, next)
	})
}

// Nodes 1 and 2 lose their locks to another, who then has a quorum; each is slow to refuse. Locks
// restored by renewals without a quorum keep the Lock for no longer than an AttemptTimeout.
func TestRestoringKeepsNoLostLockUp(t *testing.T) {
	inMemory(t, 3, redlock.Config{AttemptTimeout: time.Second}, func(t *testing.T, c *cluster) {
		lock := c.acquire(locker.Request{Owner: "me", TTL: 30 * time.Second})
		steal := func(i int) {
			c.n[i].Forget(name)
			c.n[i].Hold(locker.Request{Name: name, Owner: "other", TTL: time.Hour})
			c.n[i].hook(slow(900*ms, "acquire"), nil)
		}
		steal(1)
		match(t, lock.Renew(t.Context(), 0)) // restored in the background
		sleep(100 * ms)
		steal(2)
		start := time.Now()
		for time.Since(start) < 10*time.Second && lock.Err() == nil {
			ctx, cancel := context.WithTimeout(t.Context(), 20*ms)
			_ = lock.Renew(ctx, 0)
			cancel()
			sleep(70 * ms)
		}
		check.AtMost(t, "time that it took", time.Since(start), 2*time.Second)
	})
}

// Node 0 is renewed at once, but restoring finds its lock lost before node 1 is renewed; node 2 was
// not renewed. A quorum of old leases does not count: a renewal that returns nil has extended the
// lease.
func TestRenewalThatAnswersNilHasExtended(t *testing.T) {
	inMemory(t, 3, redlock.Config{AttemptTimeout: time.Second}, func(t *testing.T, c *cluster) {
		lock := c.acquire(locker.Request{Owner: "me"})
		c.n[0].hook(fails(errDown, "convert"), nil)
		match(t, lock.Downgrade(t.Context()))
		c.n[0].hook(slow(300*ms, "convert"), nil)
		c.n[1].hook(slow(500*ms, "renew"), nil)
		c.n[2].hook(fails(errDown, "renew"), nil)
		time.AfterFunc(100*ms, func() { c.n[0].Forget(name) })
		err := lock.Renew(t.Context(), time.Hour)
		if left := time.Until(lock.Deadline()); err == nil && left < 50*time.Minute {
			t.Errorf("renewed for an hour, and %v are left; it is at %v", left, c.at("me"))
		}
	})
}

// A node hangs for longer than the TTL, and another later. The Lock survives: no node reported a
// lock listed in the Handle as gone.
func TestHandleAndSlowNodesInTurn(t *testing.T) {
	inMemory(t, 3, redlock.Config{}, func(t *testing.T, c *cluster) {
		lock := c.acquire(locker.Request{Owner: "me"})
		_ = lock.Handle()
		for i := range 2 {
			c.n[i].hook(slow(time.Minute, "renew"), nil)
			for range 20 {
				sleep(10 * time.Second)
				check.Must(t, lock.Renew(t.Context(), 0)) // the others held and renewed all the time
			}
			c.n[i].hook(nil, nil)
			for range 20 { // until every slow call is answered, and the lock is restored
				sleep(10 * time.Second)
				check.Must(t, lock.Renew(t.Context(), 0))
			}
		}
		match(t, lock.Err())
	})
}

// A resume takes over the node locks one by one, and the old holder restores them behind it. The
// old Lock is lost all the same.
func TestOneHoldIsNeverTwoLocks(t *testing.T) {
	inMemory(t, 3, redlock.Config{AttemptTimeout: time.Second}, func(t *testing.T, c *cluster) {
		old := c.acquire(locker.Request{Owner: "me", Mode: locker.Shared})
		handle := old.Handle()
		c.n[1].hook(slow(100*ms, "resume"), nil)
		c.n[2].hook(func(what string) error {
			if what == "resume" {
				sleep(100 * ms)
				return errDown
			}
			return nil
		}, nil)
		got := make(chan *locker.Lock, 1)
		go func() { got <- locker.Must(locker.Resume(t.Context(), c, handle)) }()
		sleep(50 * ms)
		succeeds(t, old.Renew(t.Context(), 0)) // node 0's is gone, and is restored
		resumed := <-got
		oneIsLost(t, old, resumed)
	})
}

// Inspect sees a quorum of one owner, even with a node restored after a resume.
func TestResumedHoldIsInspected(t *testing.T) {
	inMemory(t, 3, redlock.Config{}, func(t *testing.T, c *cluster) {
		c.n[2].hook(fails(errDown, "acquire"), nil)
		old := c.acquire(locker.Request{Owner: "me", Note: "host-1"})
		c.n[2].hook(nil, nil)
		lock := locker.Must(locker.Resume(t.Context(), c, old.Handle()))
		match(t, lock.Renew(t.Context(), 0))
		synctest.Wait() // node 2 is restored, with the Handle's note
		c.n[0].Forget(name)
		if s, err := c.Inspect(t.Context(), name); err != nil || s.Owner != "me" || s.Note != "host-1" {
			t.Errorf("%v hold for one owner, and Inspect says: %+v, %v", c.at("me"), s, err)
		}
	})
}

// If some nodes were taken over and some hold nothing, as when two resumes share the nodes, the
// hold may live on.
func TestResumeOfSomeNodes(t *testing.T) {
	inMemory(t, 4, redlock.Config{}, func(t *testing.T, c *cluster) {
		handle := c.acquire(locker.Request{Owner: "me"}).Handle()
		for _, n := range c.n[2:] {
			n.Forget(name)
			n.set(func(n *node) { n.delay = time.Second }) // it answers after the others were taken over
		}
		only(t, check.ErrOf(locker.Resume(t.Context(), c, handle)), locker.ErrUnknownOutcome, locker.ErrNotHeld)
	})
}
