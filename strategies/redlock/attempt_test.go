package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/locktrace"
	"github.com/holdfast-go/holdfast/strategies/redlock"
)

// The Deadline is the quorum-th latest node's, and what is left of it must be MinValidity.
func TestValidity(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		took, minValidity time.Duration
		ok                bool
	}{
		{5 * time.Second, 0, true},
		{26900 * ms, 0, true}, // a tenth is left
		{27100 * ms, 0, false},
		{20 * time.Second, 10 * time.Second, true},
		{20*time.Second + 1, 10 * time.Second, false},
		{29900 * ms, 50 * ms, true},
	} {
		t.Run(fmt.Sprint(tc.took, tc.minValidity), func(t *testing.T) {
			inMemory(t, 5, redlock.Config{MinValidity: tc.minValidity, AttemptTimeout: ttl}, func(t *testing.T, c *cluster) {
				// Of the nodes that answer, two do so at once: their leases end soonest.
				for i, n := range c.nodes {
					n.set(func(n *node) { n.delay = []time.Duration{0, 0, tc.took, tc.took, ttl}[i] })
				}
				// lockertest begins a lease when it answers, so that a slow node's ends later: here
				// the third latest is at.
				setAll(c.nodes[2:4], func(n *node) { n.early = true })
				start := time.Now()
				lock, err := c.Acquire(t.Context(), locker.Request{Name: name, TTL: ttl})
				if !tc.ok {
					match(t, err, locker.ErrLost)
					matchNot(t, err, locker.ErrNotAcquired, locker.ErrUnknownOutcome)
					check.Equal(t, fmt.Sprintf("Transient(%v)", err), driver.Transient(err), true)
					sleep(2 * ttl)
					c.free("after too slow an attempt")
					return
				}
				match(t, err)
				took(t, start, tc.took)
				check.Equal(t, "time until the Deadline", lock.Deadline().Sub(start), ttl)
				setAll(c.nodes, func(n *node) { n.delay = 0 })
				_ = lock.Release(t.Context()) // one node's answer is open, and leases have ended
				sleep(2 * ttl)
				c.free("after the release")
			})
		})
	}
}

// A TTL is in whole milliseconds, as the nodes' is.
func TestTTLIsInMilliseconds(t *testing.T) {
	inMemory(t, 3, redlock.Config{TTL: time.Minute + 999*time.Microsecond}, func(t *testing.T, c *cluster) {
		for asked, want := range map[time.Duration]time.Duration{0: time.Minute, 2*time.Second + ms/2: 2 * time.Second} {
			lock := locker.Must(c.Acquire(t.Context(), locker.Request{Name: name, TTL: asked}))
			check.Equal(t, "TTL", lock.TTL(), want)
			before := time.Now()
			match(t, lock.Renew(t.Context(), 5*time.Minute+ms/2))
			check.Equal(t, "time until the Deadline of the renewal", lock.Deadline().Sub(before), 5*time.Minute)
			succeeds(t, lock.Release(t.Context()))
		}
	})
}

// A node that answers after the quorum joins the lock if that is held by then. Otherwise its node
// lock is released at once.
func TestLateNodes(t *testing.T) {
	type test struct {
		late    time.Duration // the late answer
		release time.Duration // when the lock is released; 0: never
		aloud   int
	}
	eachInMemory(t, 3, redlock.Config{}, map[string]test{
		"joins":           {late: time.Second, release: 2 * time.Second, aloud: 1},
		"released before": {late: 2 * time.Second, release: time.Second, aloud: 1},
		"never released":  {late: ttl - 1, release: 0},
	}, func(t *testing.T, c *cluster, tc test) {
		slow := c.nodes[1]
		slow.set(func(n *node) { n.delay = tc.late })
		lock := c.acquire(locker.Request{Owner: "me"})
		c.heldBy("me", 2, "before the late node")
		slow.set(func(n *node) { n.delay = 0 })
		if tc.release > 0 && tc.release < tc.late {
			sleep(tc.release)
			match(t, lock.Release(t.Context()))
			sleep(tc.late - tc.release)
		} else {
			sleep(tc.late)
			c.heldBy("me", 3, "after the late node")
			if tc.release > 0 {
				match(t, lock.Release(t.Context()))
			}
		}
		synctest.Wait()
		if slow.giving != 0 || slow.woken != tc.aloud {
			t.Errorf("the late node was released quietly %d times, aloud %d times", slow.giving, slow.woken)
		}
		sleep(2 * ttl)
		c.free("in the end")
	})
}

// An acquire that a node does not answer ends with the TTL.
func TestLateAcquireEndsWithTheTTL(t *testing.T) {
	inMemory(t, 3, redlock.Config{}, func(t *testing.T, c *cluster) {
		c.nodes[0].freeze()
		start := time.Now()
		match(t, c.acquire(locker.Request{}).Release(t.Context()))
		took(t, start, 0)
		check.Advance(ttl)
		c.nodes[0].mu.Lock()
		check.Equal(t, "acquires under way after the TTL of the hung one", c.nodes[0].now, 0)
		c.nodes[0].mu.Unlock()
		c.nodes[0].melt()
	})
}

// A caller that is cancelled at any moment returns soon. Node locks that it has, or gets later, are
// released.
func TestCancel(t *testing.T) {
	t.Parallel()
	for _, fenced := range []bool{false, true} {
		for at := 5 * ms; at <= 45*ms; at += 10 * ms {
			t.Run(fmt.Sprint(at, fenced), func(t *testing.T) {
				inMemory(t, 5, redlock.Config{Quorum: 4}, func(t *testing.T, c *cluster) {
					for i, n := range c.nodes {
						n.delay = time.Duration(i+1) * 10 * ms
						match(t, mint(n.Locker, i))
					}
					cause := errors.New("the user left")
					ctx, cancel := context.WithCancelCause(t.Context())
					time.AfterFunc(at, func() { cancel(cause) })
					start := time.Now()
					lock, err := c.Acquire(ctx, locker.Request{Name: name, Fenced: fenced})
					took := time.Since(start)
					if lock != nil { // the quorum was there before
						if fenced || at < 40*ms {
							t.Fatalf("a lock after %v", took)
						}
						match(t, lock.Release(ctx))
					} else {
						match(t, err, context.Canceled, cause, locker.ErrUnknownOutcome)
						matchNot(t, err, locker.ErrNotAcquired)
						// Undoing takes as long again at most.
						check.Within(t, "time that it took", took, at, at+max(at, 20*ms))
						setAll(c.nodes, func(n *node) {
							check.Equal(t, "acquires in flight, for which a Close of the driver would wait", n.now, 0)
						})
					}
					sleep(time.Second)
					c.free("after the cancellation")
				})
			})
		}
	}
}

// TestCancelledByAnotherAcquire checks that the refusal of another lock, as the cause of ctx, is
// not taken for the nodes' answer.
func TestCancelledByAnotherAcquire(t *testing.T) {
	inMemory(t, 3, redlock.Config{}, func(t *testing.T, c *cluster) {
		setAll(c.nodes, func(n *node) { n.delay = time.Second })
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(10*ms, func() { cancel(&locker.ContentionError{Name: "another"}) })
		_, err := c.Acquire(ctx, locker.Request{Name: name})
		match(t, err, context.Canceled, locker.ErrUnknownOutcome)
		matchNot(t, err, locker.ErrNotAcquired)
		sleep(5 * time.Second)
		c.free("after the cancellation")
	})
}

func TestCancelledBefore(t *testing.T) {
	inMemory(t, 3, redlock.Config{}, func(t *testing.T, c *cluster) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		match(t, check.ErrOf(c.Acquire(ctx, locker.Request{Name: name})), context.Canceled)
		for _, n := range c.nodes {
			check.Equal(t, "acquires at a node", n.asked, 0)
		}
	})
}

// A node whose Lease does not support OpUndo is released.
func TestPlainNodesAreReleased(t *testing.T) {
	inMemory(t, 3, redlock.Config{}, func(t *testing.T, c *cluster) {
		c.nodes[0].plain = true
		for _, n := range c.nodes[1:] {
			n.Hold(locker.Request{Name: name, TTL: time.Hour})
		}
		match(t, check.ErrOf(c.Acquire(t.Context(), locker.Request{Name: name, Owner: "me"})), locker.ErrNotAcquired)
		c.heldBy("me", 0, "after a losing attempt")
		if n := c.nodes[0]; n.woken != 1 || n.giving != 0 {
			t.Errorf("released aloud %d, quietly %d times", n.woken, n.giving)
		}
	})
}

// A failed attempt returns once its node locks are undone, so that a process that exits then leaves
// none. If a node hangs meanwhile, it returns after AttemptTimeout.
func TestLosingAttemptWaitsForItsCleanUp(t *testing.T) {
	inMemory(t, 3, redlock.Config{AttemptTimeout: 500 * ms}, func(t *testing.T, c *cluster) {
		for i, n := range c.nodes {
			n.delay = time.Duration(i) * 50 * ms
		}
		for _, n := range c.nodes[1:] {
			n.Hold(locker.Request{Name: name, TTL: time.Hour})
		}
		time.AfterFunc(75*ms, c.nodes[0].freeze)
		start := time.Now()
		match(t, check.ErrOf(c.Acquire(t.Context(), locker.Request{Name: name, Owner: "me"})), locker.ErrNotAcquired)
		took(t, start, 500*ms)
		c.nodes[0].melt()
		c.heldBy("me", 0, "once the node is back")
	})
}

// All nodes store the same owner: the Request's, that of ctx, or a fresh one.
func TestOwner(t *testing.T) {
	inMemory(t, 3, redlock.Config{}, func(t *testing.T, c *cluster) {
		fresh := c.acquire(locker.Request{})
		c.heldBy(fresh.Owner(), 3, "a fresh owner")
		match(t, fresh.Release(t.Context()))
		synctest.Wait() // it returns once a quorum is free
		again := c.acquire(locker.Request{})
		if again.Owner() == fresh.Owner() {
			t.Errorf("two owners are alike")
		}
		match(t, again.Release(t.Context()))
		synctest.Wait()
		lock := locker.Must(c.Acquire(locker.WithOwner(t.Context(), "of ctx"), locker.Request{Name: name, Note: "hello"}))
		c.heldBy("of ctx", 3, "the owner of ctx")
		s := locker.Must(c.Inspect(t.Context(), name))
		check.Equal(t, "note", s.Note, "hello")
		succeeds(t, lock.Release(t.Context()))
	})
}

// A refusal names the holder that most nodes name, when enough nodes can be free, and the channel
// of its releases.
func TestContentionNamesTheHolder(t *testing.T) {
	inMemory(t, 5, redlock.Config{WakeJitter: time.Second}, func(t *testing.T, c *cluster) {
		for i, n := range c.nodes {
			n.delay = time.Duration(i) * ms
		}
		for i, n := range c.nodes[1:] {
			owner := []string{"one", "two", "two", "three"}[i]
			n.Hold(locker.Request{Name: name, Owner: owner, Note: "note " + owner, TTL: time.Duration(i+1) * time.Minute})
		}
		_, err := c.Acquire(t.Context(), locker.Request{Name: name})
		match(t, err, locker.ErrNotAcquired)
		refusal, _ := errors.AsType[*locker.ContentionError](err)
		if refusal == nil || refusal.Owner != "two" || refusal.Note != "note two" || refusal.Name != name || refusal.Jitter != time.Second {
			t.Fatalf("refusal %+v", refusal)
		}
		if want := 2*time.Minute - 2*ms; refusal.RetryAfter != want { // with the one that is free, two make a quorum
			t.Errorf("RetryAfter %v, want %v", refusal.RetryAfter, want)
		}
		check.Equal(t, "channel, of the first node where the named owner holds", refusal.Channel.Name(), "wake:2")
	})
}

// The traces of a quorum: each node's attempt and that of the whole, and the events of one lock.
func TestTrace(t *testing.T) {
	inMemory(t, 3, redlock.Config{}, func(t *testing.T, c *cluster) {
		var mu sync.Mutex
		var events []string
		note := func(format string, args ...any) {
			mu.Lock()
			defer mu.Unlock()
			events = append(events, fmt.Sprintf(format, args...))
		}
		c.nodes[2].down = nil
		ctx := locktrace.With(t.Context(), &locktrace.Trace{
			Attempt: func(_ context.Context, i locktrace.AttemptInfo) {
				note("attempt %s %s, part %t, ok %t", i.Strategy, i.Name, i.Part, i.Err == nil)
			},
			Acquired: func(_ context.Context, i locktrace.AcquiredInfo) { note("acquired %s %s", i.Strategy, i.Client) },
			Renewed:  func(_ context.Context, i locktrace.RenewedInfo) { note("renewed %s %v", i.Strategy, i.Err) },
			Released: func(_ context.Context, i locktrace.ReleasedInfo) { note("released %s %v", i.Strategy, i.Err) },
			Lost:     func(_ context.Context, i locktrace.LostInfo) { note("lost %s", i.Strategy) },
		})
		lock := locker.Must(c.Acquire(ctx, locker.Request{Name: name, TTL: ttl}))
		succeeds(t, lock.Renew(t.Context(), 0))
		match(t, check.ErrOf(c.Acquire(ctx, locker.Request{Name: name, NoWait: true})), locker.ErrNotAcquired)
		synctest.Wait()
		succeeds(t, lock.Release(t.Context()))
		other := locker.Must(c.Acquire(ctx, locker.Request{Name: "other", TTL: ttl}))
		sleep(ttl)
		<-other.Done()
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		slices.Sort(events)
		part := func(what string) []string { return slices.Repeat([]string{"attempt lockertest " + what}, 3) }
		want := slices.Concat(
			[]string{"acquired redlock memory", "acquired redlock memory"},
			part("job, part true, ok false"), part("job, part true, ok true"), part("other, part true, ok true"),
			[]string{
				"attempt redlock job, part false, ok false", "attempt redlock job, part false, ok true", "attempt redlock other, part false, ok true",
				"lost redlock", "released redlock <nil>", "renewed redlock <nil>",
			},
		)
		if !slices.Equal(events, want) {
			t.Errorf("events:\n%q\nwant\n%q", events, want)
		}
	})
}
