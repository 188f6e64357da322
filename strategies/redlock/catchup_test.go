package redlock_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/strategies/redlock"
)

// Node 2 answers the acquire after the other two were renewed for an hour. It is renewed for as
// long: the lock survives the loss of a node at any time.
func TestLateNodeCatchesUp(t *testing.T) {
	t.Parallel()
	for what, late := range map[string]func(t *testing.T, c *hookedCluster, fenced bool) *locker.Lock{
		"acquire": func(t *testing.T, c *hookedCluster, fenced bool) *locker.Lock {
			c.n[2].hook(nil, slow(5*time.Second, "acquire"))
			return c.take(t, locker.Request{Owner: "me", Fenced: fenced})
		},
		"renewal": func(t *testing.T, c *hookedCluster, fenced bool) *locker.Lock {
			lock := c.take(t, locker.Request{Owner: "me", Fenced: fenced})
			c.n[2].hook(nil, slow(5*time.Second, "renew"))
			succeeds(t, lock.Renew(t.Context(), 0))
			c.n[2].hook(nil, nil)
			return lock
		},
		"restored": func(t *testing.T, c *hookedCluster, fenced bool) *locker.Lock {
			lock := c.take(t, locker.Request{Owner: "me", Fenced: fenced})
			c.n[2].Forget(name)
			c.n[2].hook(nil, slow(5*time.Second, "acquire"))
			succeeds(t, lock.Renew(t.Context(), 0))
			return lock
		},
	} {
		for _, fenced := range []bool{false, true} {
			t.Run(what, func(t *testing.T) {
				inHooked(t, 3, redlock.Config{}, func(t *testing.T, c *hookedCluster) {
					lock := late(t, c, fenced)
					var renewals atomic.Int32
					c.n[2].hook(on("renew", func() { renewals.Add(1) }), nil)
					match(t, lock.Renew(t.Context(), time.Hour))
					sleep(6 * time.Second) // node 2 has answered
					s, err := c.n[2].Inspect(bg, name)
					if match(t, err); s.Owner != "me" || time.Now().Add(s.Left).Before(lock.Deadline()) {
						t.Errorf("node 2 holds for %q until %v from now, want until the Deadline, %v", s.Owner, s.Left, time.Until(lock.Deadline()))
					}
					check.Equal(t, "renewals at node 2", renewals.Load(), 1)
					c.n[0].Forget(name)
					sleep(50 * time.Minute)
					check.Error(t, "after the loss of one node", lock.Err())
					match(t, lock.Renew(t.Context(), 0))
					match(t, lock.Release(t.Context()))
				})
			})
		}
	}
}

// An ordinary renewal is sent to each node once, in whatever order they answer.
func TestRenewalIsSentOnce(t *testing.T) {
	inHooked(t, 5, redlock.Config{}, func(t *testing.T, c *hookedCluster) {
		lock := c.take(t, locker.Request{Owner: "me"})
		renewals := make([]atomic.Int32, len(c.n))
		for i, n := range c.n {
			n.hook(on("renew", func() { renewals[i].Add(1) }), slow(time.Duration(i)*10*ms, "renew"))
		}
		const rounds = 5
		for range rounds {
			sleep(time.Second)
			match(t, lock.Renew(t.Context(), 0))
			sleep(time.Second)
		}
		for i := range renewals {
			check.Equal(t, "renewals at a node", renewals[i].Load(), rounds)
		}
		match(t, lock.Release(t.Context()))
	})
}
