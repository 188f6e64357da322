package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/locktrace"
	"github.com/holdfast-go/holdfast/strategies/redlock"
)

// An acquire that a node does not answer ends with the TTL.
func TestLateAcquireEndsWithTheTTL(t *testing.T) {
	inMemory(t, 3, redlock.Config{}, func(t *testing.T, c *cluster) {
		c.n[0].freeze()
		start := time.Now()
		match(t, c.acquire(locker.Request{}).Release(t.Context()))
		took(t, start, 0)
		check.Advance(ttl)
		c.n[0].set(func(n *node) {
			check.Equal(t, "acquires in flight after the TTL of the hung one", n.acquiring, 0)
		})
	})
}

// A cancelled caller returns soon, at any moment. Node locks acquired before or later are released.
func TestCancel(t *testing.T) {
	t.Parallel()
	for _, fenced := range []bool{false, true} {
		for at := 5 * ms; at < 40*ms; at += 10 * ms { // at 40 ms the quorum is reached without a token
			t.Run(fmt.Sprint(at, fenced), func(t *testing.T) {
				inMemory(t, 5, redlock.Config{Quorum: 4}, func(t *testing.T, c *cluster) {
					for i, n := range c.n {
						n.delay = time.Duration(i+1) * 10 * ms
						match(t, mint(n.Locker, i))
					}
					cause := errors.New("the user left")
					ctx, cancel := context.WithCancelCause(t.Context())
					time.AfterFunc(at, func() { cancel(cause) })
					start := time.Now()
					_, err := c.Acquire(ctx, locker.Request{Name: name, Fenced: fenced})
					match(t, err, context.Canceled, cause, locker.ErrUnknownOutcome)
					matchNot(t, err, locker.ErrNotAcquired)
					// Undoing takes as long again at most.
					check.Within(t, "time that it took", time.Since(start), at, at+max(at, 20*ms))
					for _, n := range c.n {
						check.Equal(t, "acquires in flight, for which a Close of the driver would wait", n.acquiring, 0)
					}
					sleep(time.Second)
					c.free("after the cancellation")
				})
			})
		}
	}
}

// MaxWait bounds an attempt, as a deadline of ctx does.
func TestMaxWaitBoundsAnAttempt(t *testing.T) {
	const maxWait = 100 * ms
	type acquire = func(c *cluster, held *locker.Lock) error
	eachInMemory(t, 3, redlock.Config{}, map[string]acquire{
		"NoWait": func(c *cluster, _ *locker.Lock) error {
			return check.ErrOf(c.Acquire(bg, locker.Request{Name: "another", TTL: ttl, NoWait: true, MaxWait: maxWait}))
		},
		"resume": func(c *cluster, held *locker.Lock) error {
			return check.ErrOf(c.Acquire(bg, locker.Request{Name: name, Resume: held.Handle(), MaxWait: maxWait}))
		},
		"AcquireAll of one name": func(c *cluster, _ *locker.Lock) error {
			return check.ErrOf(locker.AcquireAll(bg, c, []locker.Request{{Name: "another", TTL: ttl, MaxWait: maxWait}}))
		},
	}, func(t *testing.T, c *cluster, acquire acquire) {
		held := c.acquire(locker.Request{})
		for _, n := range c.n[1:] {
			n.freeze()
		}
		start := time.Now()
		err := acquire(c, held)
		took(t, start, maxWait)
		match(t, err, locker.ErrMaxWait, locker.ErrUnknownOutcome)
		matchNot(t, err, locker.ErrNotAcquired, locker.ErrNotHeld)
		for _, n := range c.n {
			n.melt()
			n.set(func(n *node) { check.Equal(t, "acquires in flight", n.acquiring, 0) })
		}
		check.Equal(t, "another lock is held", locker.Must(c.Inspect(t.Context(), "another")).Held, false)
		match(t, held.Release(t.Context()))
		c.free("after the release")
	})
}

// A node whose Lease does not support OpUndo is released.
func TestPlainNodesAreReleased(t *testing.T) {
	inMemory(t, 3, redlock.Config{}, func(t *testing.T, c *cluster) {
		c.n[0].hook(fails(errors.ErrUnsupported, "undo"), nil)
		for _, n := range c.n[1:] {
			n.Hold(locker.Request{Name: name, TTL: time.Hour})
		}
		match(t, check.ErrOf(c.Acquire(t.Context(), locker.Request{Name: name, Owner: "me"})), locker.ErrNotAcquired)
		c.heldBy("me", 0, "after a losing attempt")
		check.Equal(t, "releases at the node", c.n[0].count("release"), 1)
	})
}

// A failed attempt returns when its node locks are undone: a process exiting then leaves none. If a
// node hangs meanwhile, it returns after AttemptTimeout.
func TestLosingAttemptWaitsForItsCleanUp(t *testing.T) {
	inMemory(t, 3, redlock.Config{AttemptTimeout: 500 * ms}, func(t *testing.T, c *cluster) {
		for i, n := range c.n {
			if n.delay = time.Duration(i) * 50 * ms; i > 0 {
				n.Hold(locker.Request{Name: name, TTL: time.Hour})
			}
		}
		time.AfterFunc(75*ms, c.n[0].freeze)
		start := time.Now()
		match(t, check.ErrOf(c.Acquire(t.Context(), locker.Request{Name: name, Owner: "me"})), locker.ErrNotAcquired)
		took(t, start, 500*ms)
		c.n[0].melt()
		c.heldBy("me", 0, "once the node is back")
	})
}

// A Trace gets the attempts of each node and of the quorum, and the events of one lock.
func TestTrace(t *testing.T) {
	inMemory(t, 3, redlock.Config{}, func(t *testing.T, c *cluster) {
		var mu sync.Mutex
		events := map[string]int{}
		note := func(format string, args ...any) {
			mu.Lock()
			defer mu.Unlock()
			events[fmt.Sprintf(format, args...)]++
		}
		ctx := locktrace.With(t.Context(), &locktrace.Trace{
			Attempt: func(_ context.Context, i locktrace.AttemptInfo) {
				note("%s, part %t, ok %t", i.Strategy, i.AtNode, i.Err == nil)
			},
			Acquired: func(_ context.Context, i locktrace.AcquiredInfo) { note("acquired %s %s", i.Strategy, i.Client) },
			Renewed:  func(_ context.Context, i locktrace.RenewedInfo) { note("renewed %s %v", i.Strategy, i.Err) },
			Lost:     func(_ context.Context, i locktrace.LostInfo) { note("lost %s", i.Strategy) },
		})
		lock := locker.Must(c.Acquire(ctx, locker.Request{Name: name, TTL: ttl}))
		succeeds(t, lock.Renew(t.Context(), 0))
		match(t, check.ErrOf(c.Acquire(ctx, locker.Request{Name: name, NoWait: true})), locker.ErrNotAcquired)
		sleep(ttl)
		<-lock.Done()
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		want := map[string]int{
			"lockertest, part true, ok true": 3, "lockertest, part true, ok false": 3,
			"redlock, part false, ok true": 1, "redlock, part false, ok false": 1,
			"acquired redlock memory": 1, "renewed redlock <nil>": 1, "lost redlock": 1,
		}
		if !maps.Equal(events, want) {
			t.Errorf("events %v, want %v", events, want)
		}
	})
}

// If a callback of the Trace panics after the acquire, the lock is released.
func TestAcquireWhoseCallbackPanics(t *testing.T) {
	eachInMemory(t, 3, redlock.Config{}, map[string]*locktrace.Trace{
		"Attempt": {Attempt: func(_ context.Context, i locktrace.AttemptInfo) {
			if !i.AtNode {
				panic("a callback's own")
			}
		}},
		"Acquired": {Acquired: func(context.Context, locktrace.AcquiredInfo) { panic("a callback's own") }},
	}, func(t *testing.T, c *cluster, trace *locktrace.Trace) {
		func() {
			defer func() { check.Equal(t, "panic", recover(), "a callback's own") }()
			_, _ = c.Acquire(locktrace.With(t.Context(), trace), locker.Request{Name: name, TTL: ttl})
		}()
		c.free("after the panic")
	})
}

// If another holds a node, the acquire is refused at once, even beside an earlier attempt in flight
// there.
func TestAnotherRefusesAtOnce(t *testing.T) {
	inMemory(t, 2, redlock.Config{Quorum: 2}, func(t *testing.T, c *cluster) {
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

// For up to 20 ms a node is not asked while the release of the previous hold is in flight there: it
// would refuse.
func TestOwnReleaseIsAwaited(t *testing.T) {
	type test struct{ release, asked time.Duration }
	eachInMemory(t, 3, redlock.Config{}, map[string]test{
		"late":   {10 * ms, 10 * ms},
		"silent": {10 * time.Second, 20 * ms},
	}, func(t *testing.T, c *cluster, tt test) {
		lock := c.acquire(locker.Request{})
		c.n[2].hook(nil, slow(tt.release, "release"))
		match(t, lock.Release(t.Context()))
		synctest.Wait() // node 2 has executed it
		released := time.Now()
		var asked []time.Duration
		c.n[2].hook(func(what string) error {
			if what == "acquire" {
				asked = append(asked, time.Since(released))
			}
			return nil
		}, nil)
		lock = c.acquire(locker.Request{})
		took(t, released, 0)
		check.Advance(time.Second)
		if !slices.Equal(asked, []time.Duration{tt.asked}) {
			t.Errorf("node 2 was asked after %v, want once after %v", asked, tt.asked)
		}
		match(t, lock.Release(t.Context()))
		sleep(20 * time.Second)
	})
}

// An attempt waiting for an earlier one's calls ends at once if its caller leaves. So does the wait
// of a lock released meanwhile.
func TestWaitForEarlierTryEnds(t *testing.T) {
	tests := map[string]bool{"the caller leaves": true, "the lock is released": false}
	eachInMemory(t, 3, redlock.Config{AttemptTimeout: 5 * time.Second}, tests, func(t *testing.T, c *cluster, leaves bool) {
		lock := c.acquire(locker.Request{Owner: "me"})
		c.n[2].hook(slow(10*time.Second, "release"), nil)
		match(t, lock.Release(t.Context()))
		if leaves {
			c.n[0].hook(fails(errDown, "acquire"), nil)
			ctx, cancel := context.WithTimeout(t.Context(), 20*ms)
			defer cancel()
			start := time.Now()
			match(t, check.ErrOf(c.Acquire(ctx, locker.Request{Name: name, TTL: ttl})), context.DeadlineExceeded)
			check.AtMost(t, "time that it took", time.Since(start), 100*ms)
			return
		}
		lock = c.acquire(locker.Request{Owner: "me again"})
		asked := c.n[2].count("acquire")
		match(t, lock.Release(t.Context()))
		check.Advance(20 * time.Second)
		check.Equal(t, "acquires at node 2 for a lock that was released", c.n[2].count("acquire")-asked, 0)
		matchNot(t, check.ErrOf(c.Acquire(t.Context(), locker.Request{Name: name})), locker.ErrNotAcquired)
	})
}

// A silent node gets a bounded number of acquires while the others are a quorum.
func TestHungNodeIsNotAskedWithoutEnd(t *testing.T) {
	inMemory(t, 3, redlock.Config{AttemptTimeout: 100 * ms}, func(t *testing.T, c *cluster) {
		c.n[1].freeze()
		for range 500 {
			match(t, c.acquire(locker.Request{}).Release(t.Context()))
			check.Advance(10 * ms)
		}
		check.AtMost(t, "acquires that hang at once", c.n[1].most, 30)
		c.n[1].melt()
		sleep(ttl)
		asked := c.n[1].count("acquire")
		succeeds(t, c.acquire(locker.Request{}).Release(t.Context()))
		check.Equal(t, "acquires at the node that is back", c.n[1].count("acquire"), asked+1)
	})
}

// All nodes were late once, as on a busy machine, and calls are still unanswered. The next attempts
// get the locks as soon as the nodes answer.
func TestNodesThatWereLateAreAsked(t *testing.T) {
	inMemory(t, 3, redlock.Config{AttemptTimeout: time.Second}, func(t *testing.T, c *cluster) {
		for _, n := range c.n {
			n.freeze()
		}
		const callers = 12
		var wg sync.WaitGroup
		for i := range callers {
			wg.Go(func() {
				_, err := c.Acquire(t.Context(), locker.Request{Name: fmt.Sprint("late", i), TTL: ttl})
				match(t, err, locker.ErrUnknownOutcome)
				sleep(ms)
				lock, err := c.Acquire(t.Context(), locker.Request{Name: fmt.Sprint("again", i), TTL: ttl})
				if match(t, err); err == nil {
					match(t, lock.Release(t.Context()))
				}
			})
		}
		sleep(1100 * ms) // the first attempts are over
		ctx, cancel := context.WithTimeout(t.Context(), 10*ms)
		defer cancel()
		_, err := c.Acquire(ctx, locker.Request{Name: "leaves", TTL: ttl})
		match(t, err, context.DeadlineExceeded)
		matchNot(t, err, locker.ErrUnknownOutcome) // nothing was sent
		for _, n := range c.n {
			n.set(func(n *node) {
				check.AtMost(t, "acquires in flight at once", n.most, callers)
			})
			n.melt()
		}
		wg.Wait()
	})
}
