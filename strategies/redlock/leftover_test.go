package redlock_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/strategies/redlock"
)

// An attempt is refused at node 0 while node 1 grants it late. The next one finds all nodes free
// except for the first one's node lock at node 1.
func TestEarlierTryRefusesNone(t *testing.T) {
	type test struct {
		late  time.Duration // node 1's answer to the first try
		owner string
		won   bool
		took  time.Duration
	}
	eachInHooked(t, 2, redlock.Config{Quorum: 2}, map[string]test{
		"random owners":    {late: 50 * ms, won: true, took: 50 * ms},
		"one owner":        {late: 50 * ms, owner: "me", won: true, took: 50 * ms},
		"node 1 is silent": {late: 10 * time.Second, took: time.Second}, // an AttemptTimeout
	}, func(t *testing.T, c *hookedCluster, tt test) {
		other := c.n[0].Hold(locker.Request{Name: name, Owner: "other", TTL: time.Hour})
		c.n[1].hook(nil, slow(tt.late, "acquire"))
		req := locker.Request{Name: name, TTL: ttl, Owner: tt.owner, NoWait: true}
		match(t, check.ErrOf(c.Acquire(t.Context(), req)), locker.ErrNotAcquired)
		synctest.Wait() // node 1 has executed it
		match(t, other.Release(bg))
		c.n[1].hook(nil, nil)
		start := time.Now()
		lock, err := c.Acquire(t.Context(), req)
		if took := time.Since(start); (err == nil) != tt.won || took != tt.took {
			t.Errorf("the second try: %v after %v, want a lock: %v after %v", err, took, tt.won, tt.took)
		}
		matchNot(t, err, locker.ErrNotAcquired)
		if err == nil {
			match(t, lock.Release(t.Context()))
		}
	})
}

// If another holds a node, the acquire is refused at once, whatever an earlier attempt has in
// flight there.
func TestAnotherRefusesAtOnce(t *testing.T) {
	inHooked(t, 2, redlock.Config{Quorum: 2}, func(t *testing.T, c *hookedCluster) {
		first := c.n[0].Hold(locker.Request{Name: name, Owner: "other", TTL: time.Hour})
		c.n[1].hook(slow(10*time.Second, "acquire"), nil) // not executed before
		match(t, check.ErrOf(c.Acquire(t.Context(), locker.Request{Name: name, TTL: ttl})), locker.ErrNotAcquired)
		synctest.Wait() // node 1 is asked
		match(t, first.Release(bg))
		c.n[1].Hold(locker.Request{Name: name, Owner: "other", TTL: time.Hour})
		c.n[1].hook(nil, nil)
		start := time.Now()
		match(t, check.ErrOf(c.Acquire(t.Context(), locker.Request{Name: name, TTL: ttl})), locker.ErrNotAcquired)
		took(t, start, 0)
	})
}

// A lock can be acquired right after its release, although node 2 is slow to release it and node 0
// is down by then. If it is acquired without node 2, that joins once its release is done.
func TestOwnReleaseRefusesNone(t *testing.T) {
	tests := map[string]bool{"one node is down": true, "all are up": false}
	eachInHooked(t, 3, redlock.Config{}, tests, func(t *testing.T, c *hookedCluster, down bool) {
		lock := c.take(t, locker.Request{Owner: "me"})
		c.n[2].hook(slow(50*ms, "release"), nil)
		match(t, lock.Release(t.Context()))
		if down {
			c.n[0].hook(fails(errDown, "acquire"), nil)
		}
		lock = locker.Must(c.Acquire(t.Context(), locker.Request{Name: name, TTL: ttl, Owner: "me again"}))
		sleep(time.Second)
		if at := c.at("me again"); len(at) != 3 && !down || len(at) != 2 && down {
			t.Errorf("it is held at the nodes %v", at)
		}
		match(t, lock.Release(t.Context()))
	})
}

// A node is not asked while the release of the hold before is in flight there, for up to 20 ms: it
// would refuse.
func TestOwnReleaseIsAwaited(t *testing.T) {
	type test struct{ release, asked time.Duration }
	eachInHooked(t, 3, redlock.Config{}, map[string]test{
		"late":   {10 * ms, 10 * ms},
		"silent": {10 * time.Second, 20 * ms},
	}, func(t *testing.T, c *hookedCluster, tt test) {
		lock := c.take(t, locker.Request{})
		synctest.Wait() // all nodes are held
		c.n[2].hook(nil, slow(tt.release, "release"))
		match(t, lock.Release(t.Context()))
		synctest.Wait() // node 2 has executed it
		released := time.Now()
		var asked []time.Duration
		c.n[2].hook(on("acquire", func() { asked = append(asked, time.Since(released)) }), nil)
		lock = c.take(t, locker.Request{})
		took(t, released, 0)
		check.Advance(time.Second)
		if !slices.Equal(asked, []time.Duration{tt.asked}) {
			t.Errorf("node 2 was asked after %v, want once after %v", asked, tt.asked)
		}
		match(t, lock.Release(t.Context()))
		sleep(20 * time.Second)
	})
}

// An attempt that waits for calls of an earlier one ends at once if its caller leaves, and so does
// the wait of a lock that is released meanwhile.
func TestWaitForEarlierTryEnds(t *testing.T) {
	t.Parallel()
	begin := func(t *testing.T, c *hookedCluster) {
		lock := c.take(t, locker.Request{Owner: "me"})
		c.n[2].hook(slow(10*time.Second, "release"), nil)
		match(t, lock.Release(t.Context()))
	}
	t.Run("the caller leaves", func(t *testing.T) {
		inHooked(t, 3, redlock.Config{AttemptTimeout: 5 * time.Second}, func(t *testing.T, c *hookedCluster) {
			begin(t, c)
			c.n[0].hook(fails(errDown, "acquire"), nil)
			ctx, cancel := context.WithTimeout(t.Context(), 20*ms)
			defer cancel()
			start := time.Now()
			match(t, check.ErrOf(c.Acquire(ctx, locker.Request{Name: name, TTL: ttl})), context.DeadlineExceeded)
			tookAtMost(t, start, 100*ms)
		})
	})
	t.Run("the lock is released", func(t *testing.T) {
		inHooked(t, 3, redlock.Config{}, func(t *testing.T, c *hookedCluster) {
			begin(t, c)
			lock := c.take(t, locker.Request{Owner: "me again"})
			asked := false
			c.n[2].hook(on("acquire", func() { asked = true }), nil)
			match(t, lock.Release(t.Context()))
			check.Advance(20 * time.Second)
			check.Equal(t, "node 2 is asked for a lock that was released", asked, false)
			if _, err := c.Acquire(t.Context(), locker.Request{Name: name}); errors.Is(err, locker.ErrNotAcquired) {
				t.Error(err)
			}
		})
	})
}
