//realtime:ok each test runs in a bubble, by inHooked or its like

package redlock_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/strategies/redlock"
)

// Node 1 refuses an upgrade, and node 2 is slow to upgrade: it is made shared again, too, before
// the upgrade returns.
func TestRefusedUpgradeReturnsWhenItIsTakenBack(t *testing.T) {
	inHooked(t, 3, redlock.Config{Quorum: 3}, func(t *testing.T, c *hookedCluster) {
		lock := c.take(t, locker.Request{Owner: "me", Mode: locker.Shared})
		c.n[1].Hold(locker.Request{Name: name, Owner: "reader", Mode: locker.Shared, TTL: time.Hour})
		c.n[2].hook(slow(50*ms, "convert"), nil)
		wantError(t, "an upgrade that is refused", lock.Upgrade(t.Context()))
		match(t, locker.Must(locker.Resume(t.Context(), c, lock.Handle())).Release(t.Context()))
	})
}

// Node 0 fails renewals, so that its lease ends by the local clock after a resume has taken it
// over; node 1, which was taken over too, is slow to say so.
func TestWhatWasTakenOverIsLost(t *testing.T) {
	inHooked(t, 3, redlock.Config{AttemptTimeout: time.Second}, func(t *testing.T, c *hookedCluster) {
		old := c.take(t, locker.Request{Owner: "me", Mode: locker.Shared, TTL: 30 * time.Second})
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
		for range 20 {
			errOld, errNew := old.Renew(t.Context(), 0), next.Renew(t.Context(), 0)
			match(t, errNew)
			if errOld != nil {
				match(t, errOld, locker.ErrLost)
				return
			}
			sleep(10 * time.Second)
		}
		t.Errorf("200 s after the resume both Locks of one hold renew: %v, %v", old.Err(), next.Err())
	})
}

// Nodes 1 and 2 lose what they had to another, who so has a quorum; each is slow to refuse. What is
// restored by renewals that missed the quorum is no reason to go on, for longer than an
// AttemptTimeout.
func TestRestoringKeepsNoLostLockUp(t *testing.T) {
	inHooked(t, 3, redlock.Config{AttemptTimeout: time.Second}, func(t *testing.T, c *hookedCluster) {
		lock := c.take(t, locker.Request{Owner: "me", TTL: 30 * time.Second})
		steal := func(i int) {
			c.n[i].Forget(name)
			c.n[i].Hold(locker.Request{Name: name, Owner: "other", TTL: time.Hour})
			c.n[i].hook(slow(900*ms, "acquire"), nil)
		}
		steal(1)
		match(t, lock.Renew(t.Context(), 0)) // it is restored, behind
		sleep(100 * ms)
		steal(2)
		start := time.Now()
		for time.Since(start) < 10*time.Second && lock.Err() == nil {
			ctx, cancel := context.WithTimeout(t.Context(), 20*ms)
			_ = lock.Renew(ctx, 0)
			cancel()
			sleep(70 * ms)
		}
		tookAtMost(t, start, 2*time.Second)
	})
}

// Node 0 is renewed at once, but restoring finds that it lost the lock before node 1 is renewed;
// node 2 was not renewed. A quorum of old leases does not count: a renewal that returns nil has
// extended the lease.
func TestRenewalThatAnswersNilHasExtended(t *testing.T) {
	inHooked(t, 3, redlock.Config{AttemptTimeout: time.Second}, func(t *testing.T, c *hookedCluster) {
		lock := c.take(t, locker.Request{Owner: "me"})
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

// AttemptTimeout bounds the operations: here an upgrade, with a renewal behind it. Two nodes hang
// in conversions, and renew at once.
func TestUpgradeIsBoundedByAttemptTimeout(t *testing.T) {
	inHooked(t, 3, redlock.Config{AttemptTimeout: time.Second}, func(t *testing.T, c *hookedCluster) {
		lock := c.take(t, locker.Request{Owner: "me", Mode: locker.Shared})
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

// A renewal whose ctx has ended says the same each time.
func TestRenewWithAnEndedCtx(t *testing.T) {
	inHooked(t, 3, redlock.Config{}, func(t *testing.T, c *hookedCluster) {
		lock := c.take(t, locker.Request{Owner: "me"})
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		got := map[string]int{}
		for range 200 {
			hookAll(c.n, slow(ms, "renew"), nil)
			got[fmt.Sprint(lock.Renew(ctx, 0))]++
			sleep(time.Second / 10)
		}
		check.AtMost(t, "different errors", len(got), 1)
	})
}

// Node 0 has lost what it had, and says so once the renewal is won by the others, or the next one,
// too: it is restored all the same, whether or not a Handle names what it had.
func TestLateNewsOfALossIsRestored(t *testing.T) {
	t.Parallel()
	for _, named := range []bool{false, true} {
		for _, renewals := range []int{1, 2, 3} {
			t.Run(fmt.Sprintf("named: %v, renewals: %d", named, renewals), func(t *testing.T) {
				inHooked(t, 3, redlock.Config{}, func(t *testing.T, c *hookedCluster) {
					lock := c.take(t, locker.Request{Owner: "me"})
					if named {
						_ = lock.Handle()
					}
					c.n[0].Forget(name)
					c.n[0].hook(nil, slow(50*ms, "renew"))
					for range renewals { // node 0 is busy with the first
						match(t, lock.Renew(t.Context(), 0))
						sleep(10 * ms)
					}
					sleep(50 * ms)
					c.wantAt(t, 3)
					match(t, lock.Release(t.Context()))
				})
			})
		}
	}
}
