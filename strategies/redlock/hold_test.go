package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/effort"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/strategies/redlock"
)

// state is a node's state between the acquire and the next operation.
type state int

const (
	fine    state = iota
	forgot        // it lost its data
	stolen        // it lost its data, and another holds there now
	refuses       // it answers with an error unrelated to locks
	frozen        // it answers nothing
	never         // it refused the acquire: another held there, and no longer does
)

func (s state) String() string {
	return [...]string{"fine", "forgot", "stolen", "refuses", "frozen", "never"}[s]
}

func (s state) apply(n *node) {
	switch s {
	case forgot:
		n.Forget(name)
	case stolen:
		n.Forget(name)
		n.Hold(locker.Request{Name: name, Owner: "another", TTL: time.Hour})
	case refuses:
		n.fail(errDown)
	case frozen:
		n.freeze()
	}
}

// states calls f with combinations of n node states under which the acquire succeeds: with all if n
// <= 3, else with a random sixteenth.
func states(n, quorum int, f func(t *testing.T, all []state), t *testing.T) {
	t.Helper()
	kinds := []state{fine, forgot, stolen, refuses, frozen, never}
	random := rand.New(rand.NewPCG(uint64(n), uint64(quorum)))
	combinations(n, kinds, func(all []state) {
		if tally(all, never) <= n-quorum && (n <= 3 || random.IntN(16) == 0) {
			t.Run(fmt.Sprint(all), func(t *testing.T) { f(t, all) })
		}
	})
}

// won acquires at all nodes except those in state never, and then brings the states about.
func (c *cluster) won(all []state, req locker.Request) *locker.Lock {
	c.t.Helper()
	for i, s := range all {
		if s == never {
			other := c.n[i].Hold(locker.Request{Name: name, Owner: "another"})
			defer func() { match(c.t, other.Release(bg)) }()
		}
	}
	req.Owner = "me"
	lock := c.acquire(req)
	c.heldBy("me", len(all)-tally(all, never), "after the acquire")
	for i, s := range all {
		s.apply(c.n[i])
	}
	return lock
}

// A renewal needs the quorum, and reports a loss only if it is certain. With the quorum it restores
// the lock on nodes without it; they count from the next renewal.
func TestRenew(t *testing.T) {
	t.Parallel()
	for _, of := range []struct{ n, quorum int }{{3, 2}, {3, 3}, {5, 3}} {
		t.Run(fmt.Sprintf("%d of %d", of.quorum, of.n), func(t *testing.T) {
			t.Parallel()
			states(of.n, of.quorum, func(t *testing.T, all []state) {
				inMemory(t, of.n, redlock.Config{Quorum: of.quorum, AttemptTimeout: 500 * ms}, func(t *testing.T, c *cluster) {
					renewOnce(t, c, all, of.quorum, tally(all, fine)%2 == 0)
				})
			}, t)
		})
	}
}

func renewOnce(t *testing.T, c *cluster, all []state, quorum int, fenced bool) {
	t.Helper()
	for i, n := range c.n {
		if fenced {
			match(t, mint(n.Locker, i))
		}
	}
	lock := c.won(all, locker.Request{Fenced: fenced})
	sleep(time.Second)
	before, start := lock.Deadline(), time.Now()
	err := lock.Renew(t.Context(), 0)
	took := time.Since(start)
	renewed, unknown := tally(all, fine), tally(all, refuses, frozen)
	switch {
	case renewed >= quorum:
		match(t, err)
		check.Equal(t, "time that the hung cost", took, 0)
		check.Equal(t, "time until the Deadline", lock.Deadline().Sub(start), ttl)
		c.heldBy("me", renewed+tally(all, forgot, never, refuses, frozen), "after the renewal")
		if fenced {
			for i, s := range all {
				if got := c.n[i].state().Fence; (s == fine || s == forgot || s == never) && got < lock.Fence() {
					t.Errorf("node %d (%v) counts at %d, below %d", i, s, got, lock.Fence())
				}
			}
		}
	case renewed+unknown >= quorum:
		matchNot(t, err, locker.ErrNotHeld)
		missed, found := errors.AsType[*redlock.QuorumError](err)
		if !found || missed.Done > renewed {
			t.Errorf("error %v, want a *QuorumError", err)
		}
		if tally(all, refuses) > 0 && renewed+tally(all, frozen) < quorum && !errors.Is(err, errDown) {
			t.Errorf("error %v does not tell of the nodes", err)
		}
		match(t, lock.Err())
		check.Equal(t, "Deadline, without a quorum", lock.Deadline(), before)
		if want := 500 * ms; took > want || took == want && tally(all, frozen) == 0 {
			t.Errorf("it took %v", took)
		}
	default:
		match(t, err, locker.ErrLost)
		match(t, lock.Err(), locker.ErrLost)
	}

	// The nodes come back, and the renewal restores the missing node locks.
	for i, s := range all {
		c.n[i].fail(nil)
		c.n[i].melt()
		if s == stolen {
			c.n[i].Forget(name)
		}
	}
	synctest.Wait()
	if lock.Err() == nil {
		match(t, lock.Renew(t.Context(), 0))
		c.heldBy("me", len(all), "after the next renewal")
		match(t, lock.Renew(t.Context(), 0))
		match(t, lock.Release(t.Context()))
	} else if err := lock.Release(t.Context()); !errors.Is(err, locker.ErrLost) {
		t.Errorf("Release of a lost lock: %v", err)
	}
	c.free("after the release")
}

// Node 2 answers after the other two were renewed for an hour. It is renewed once, for as long: the
// lock survives the loss of a node at any time.
func TestLateNodeCatchesUp(t *testing.T) {
	t.Parallel()
	for what, op := range map[string]string{"acquire": "acquire", "renewal": "renew", "restored": "acquire"} {
		for _, fenced := range []bool{false, true} {
			t.Run(what, func(t *testing.T) {
				inMemory(t, 3, redlock.Config{}, func(t *testing.T, c *cluster) {
					due := make(chan struct{})
					answer := func(what string) error {
						if what == op {
							<-due
						}
						return nil
					}
					if what == "acquire" {
						c.n[2].hook(nil, answer)
					}
					lock := c.acquire(locker.Request{Owner: "me", Fenced: fenced})
					if what == "restored" {
						c.n[2].Forget(name)
					}
					c.n[2].hook(nil, answer)
					if what != "acquire" {
						succeeds(t, lock.Renew(t.Context(), 0))
					}
					c.n[2].hook(nil, nil)
					renewals := c.n[2].count("renew")
					match(t, lock.Renew(t.Context(), time.Hour))
					if fenced || what == "renewal" {
						sleep(5 * time.Second) // no call waits for node 2 any more; otherwise one is about to leave
					}
					close(due)
					synctest.Wait()
					if s := c.n[2].state(); s.Owner != "me" || time.Now().Add(s.Left).Before(lock.Deadline()) {
						t.Errorf("node 2 holds for %q until %v from now, want until the Deadline, %v", s.Owner, s.Left, time.Until(lock.Deadline()))
					}
					check.Equal(t, "renewals at node 2", c.n[2].count("renew")-renewals, 1)
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

// A renewal without a quorum restores missing node locks: the next one has a quorum with them.
func TestRenewalThatMissesTheQuorumRestores(t *testing.T) {
	inMemory(t, 3, redlock.Config{}, func(t *testing.T, c *cluster) {
		other := c.n[2].Hold(locker.Request{Name: name, Owner: "other", TTL: time.Hour})
		lock := c.acquire(locker.Request{Owner: "me"})
		match(t, other.Release(bg))
		c.n[0].hook(slow(time.Minute, "renew"), nil)
		match(t, lock.Renew(t.Context(), 0), locker.ErrUnknownOutcome) // one of three nodes
		c.heldBy("me", 3, "after a renewal that missed the quorum")
		match(t, lock.Renew(t.Context(), 0))
	})
}

// A restored node lock gets a lease until the Deadline, even if a renewal asks for a shorter one.
func TestRestoredNodesLastUntilTheDeadline(t *testing.T) {
	inMemory(t, 3, redlock.Config{}, func(t *testing.T, c *cluster) {
		lock := c.acquire(locker.Request{Owner: "me"})
		match(t, lock.Renew(t.Context(), time.Hour))
		for _, i := range []int{0, 1} {
			c.n[i].Forget(name)
			succeeds(t, lock.Renew(t.Context(), 0))
		}
		match(t, lock.Renew(t.Context(), 0)) // all is restored and counts
		sleep(31 * time.Second)
		c.excludes(lock, "after two nodes were restored")
	})
}

// A hanging renewal of a lost node lock does not block renewals of its replacement.
func TestRestoredNodeLockIsRenewedByItself(t *testing.T) {
	inMemory(t, 3, redlock.Config{}, func(t *testing.T, c *cluster) {
		lock := c.acquire(locker.Request{Owner: "me"})
		c.n[0].hook(slow(20*time.Second, "renew"), nil) // one renewal hangs
		succeeds(t, lock.Renew(t.Context(), 0))
		c.n[0].Forget(name)
		succeeds(t, lock.Downgrade(t.Context())) // finds node 0 without the lock
		c.n[0].hook(nil, nil)
		succeeds(t, lock.Renew(t.Context(), 0)) // restores it
		c.heldBy("me", 3, "now")
		c.n[1].hook(fails(errDown, "renew"), nil) // from now on node 0, which is well, decides
		match(t, lock.Renew(t.Context(), 0))
		sleep(30 * time.Second)
	})
}

// A node lock that ended by the local clock may live on at its node after an unanswered renewal. It
// is released, so that the lock can be restored there and nothing stays behind.
func TestNodeLockWhoseRenewalWasLostIsReleased(t *testing.T) {
	inMemory(t, 3, redlock.Config{}, func(t *testing.T, c *cluster) {
		lock := c.acquire(locker.Request{Owner: "me"})
		c.n[2].hook(nil, fails(errDown, "renew")) // executed, and not answered
		match(t, lock.Renew(t.Context(), time.Hour))
		sleep(ttl + time.Second) // the lock of node 2 is over, as far as is known
		c.n[2].hook(nil, nil)
		succeeds(t, lock.Renew(t.Context(), time.Hour))
		succeeds(t, lock.Renew(t.Context(), time.Hour))
		c.n[0].hook(fails(errDown, "renew"), nil) // from now on node 2 decides
		match(t, lock.Renew(t.Context(), time.Hour))
		c.n[0].hook(nil, nil)
		succeeds(t, lock.Release(t.Context()))
		c.heldBy("me", 0, "now")
	})
}

// Renewals and conversions beside a node that hangs leave no goroutines.
func TestCallsDoNotPileUp(t *testing.T) { //nolint:paralleltest // see below
	synctest.Test(t, func(t *testing.T) { // not beside other tests: it counts the goroutines of all
		c := newCluster(t, 3, redlock.Config{})
		lock := c.acquire(locker.Request{Mode: locker.Shared})
		c.n[2].hook(slow(time.Minute, "renew"), nil)
		match(t, lock.Renew(t.Context(), time.Hour))
		before := runtime.NumGoroutine()
		for range 300 {
			match(t, lock.Renew(t.Context(), 0))
			match(t, lock.Upgrade(t.Context()))
			match(t, lock.Downgrade(t.Context()))
		}
		synctest.Wait()
		check.AtMost(t, "goroutines more, after 900 calls past a node that hangs", runtime.NumGoroutine()-before, 100)
		match(t, lock.Release(t.Context()))
		sleep(2 * time.Hour) // background calls end
	})
}

// A renewal that is cut off returns at once, and the Deadline stays.
func TestRenewIsCancelled(t *testing.T) {
	inMemory(t, 3, redlock.Config{}, func(t *testing.T, c *cluster) {
		lock := c.acquire(locker.Request{})
		before, start := lock.Deadline(), time.Now()
		hookAll(c.n, slow(300*ms, "renew"), nil)
		ctx, cancel := context.WithTimeout(t.Context(), 100*ms)
		defer cancel()
		err := lock.Renew(ctx, 0)
		match(t, err, context.DeadlineExceeded)
		only(t, err, locker.ErrUnknownOutcome, locker.ErrNotHeld)
		took(t, start, 100*ms)
		check.Equal(t, "Deadline", lock.Deadline(), before)
	})
}

// A renewal with an ended ctx sends nothing.
func TestRenewWithAnEndedCtx(t *testing.T) {
	inMemory(t, 3, redlock.Config{}, func(t *testing.T, c *cluster) {
		lock := c.acquire(locker.Request{Owner: "me"})
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		for range 20 { // select would choose at random
			match(t, lock.Renew(ctx, 0), context.Canceled)
		}
		synctest.Wait()
		check.Equal(t, "renewals at a node", c.n[0].count("renew"), 0)
	})
}

// Node 0 lost its lock, and reports it after the others have won this renewal, or a later one. The
// lock is restored there, whether or not a Handle lists it.
func TestLateNewsOfALossIsRestored(t *testing.T) {
	t.Parallel()
	for _, named := range []bool{false, true} {
		for _, renewals := range []int{1, 2, 3} {
			t.Run(fmt.Sprintf("named: %v, renewals: %d", named, renewals), func(t *testing.T) {
				inMemory(t, 3, redlock.Config{}, func(t *testing.T, c *cluster) {
					lock := c.acquire(locker.Request{Owner: "me"})
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
					c.heldBy("me", 3, "now")
					match(t, lock.Release(t.Context()))
				})
			})
		}
	}
}

// While a node is being asked it may hold, so the loss is not certain.
func TestReleaseIsNotLostWhileANodeIsAsked(t *testing.T) {
	inMemory(t, 3, redlock.Config{}, func(t *testing.T, c *cluster) {
		c.n[2].hook(nil, slow(2*time.Second, "acquire")) // executed at once, answered late
		lock := c.acquire(locker.Request{Owner: "me"})
		c.n[1].Forget(name)
		c.heldBy("me", 2, "now")
		matchNot(t, lock.Release(t.Context()), locker.ErrLost)
		sleep(5 * time.Second)
	})
}

// All nodes keep the name until the same time, even after a late acquire.
func TestMinHoldOfNodes(t *testing.T) {
	inMemory(t, 3, redlock.Config{}, func(t *testing.T, c *cluster) {
		const minHold = 10 * time.Second
		c.n[2].hook(slow(2*time.Second, "acquire"), nil)
		lock := c.acquire(locker.Request{Owner: "me", MinHold: minHold})
		end := time.Now().Add(minHold)
		sleep(3 * time.Second)
		match(t, lock.Release(t.Context()))
		sleep(time.Second)
		for i, n := range c.n {
			state, err := n.Inspect(t.Context(), name)
			if err != nil || !state.Held || state.Holds != 0 || state.Left != time.Until(end) {
				t.Errorf("node %d: %+v, %v; want the name kept for %v", i, state, err, time.Until(end))
			}
		}
	})
}

// The nodes cannot make a release wait without bound. If its ctx has ended, it waits for an
// AttemptTimeout in all, even if the decisive answers come late within it.
func TestReleaseIsBounded(t *testing.T) {
	t.Parallel()
	late := func(string) error { sleep(900 * ms); return errDown }
	hangs := slow(time.Minute, "release")
	for _, tt := range []struct {
		name      string
		cfg       redlock.Config
		hooks     []hook
		left, max time.Duration // of ctx, and for the release
		want      error
	}{
		{"all hang", redlock.Config{}, []hook{hangs, hangs, hangs}, time.Minute, 2 * time.Second, locker.ErrUnknownOutcome},
		{"all hang, and ctx ends", redlock.Config{}, []hook{hangs, hangs, hangs}, 500 * ms, time.Second, locker.ErrUnknownOutcome},
		{"ctx has ended", redlock.Config{}, []hook{late, late, hangs}, 0, time.Second, errDown},
		{"a short ReleaseTimeout", redlock.Config{ReleaseTimeout: 300 * ms}, []hook{hangs, hangs, hangs}, time.Minute, 300 * ms, locker.ErrUnknownOutcome},
		{"a short ReleaseTimeout, and ctx has ended", redlock.Config{ReleaseTimeout: 300 * ms}, []hook{hangs, hangs, hangs}, 0, 300 * ms, locker.ErrUnknownOutcome},
		{"a long ReleaseTimeout", redlock.Config{ReleaseTimeout: 5 * time.Second}, []hook{hangs, hangs, hangs}, time.Minute, 5 * time.Second, locker.ErrUnknownOutcome},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inMemory(t, 3, tt.cfg, func(t *testing.T, c *cluster) {
				lock := c.acquire(locker.Request{Owner: "me"})
				for i, n := range c.n {
					n.hook(tt.hooks[i], nil)
				}
				ctx, cancel := context.WithTimeout(t.Context(), tt.left)
				defer cancel()
				start := time.Now()
				match(t, lock.Release(ctx), tt.want)
				check.AtMost(t, "time that it took", time.Since(start), tt.max)
			})
		})
	}
}

// Without failures, and whichever nodes are late, a lock renewed for an hour is gone from every
// node once it has answered: no acquire or renewal follows the release.
func TestReleaseOvertakesNothing(t *testing.T) {
	t.Parallel()
	const slowest = 700 * ms
	for seed := range effort.Of[uint64](30, 30, 300) {
		synctest.Test(t, func(t *testing.T) {
			dice := newDice(seed, 11)
			upTo := func(d time.Duration) time.Duration {
				if dice.upTo(3) > 0 { // most are quick, so that one is late beside them
					d /= 100
				}
				return dice.lasts(d)
			}
			c := newCluster(t, 3, redlock.Config{AttemptTimeout: time.Minute})
			for _, n := range c.n {
				late := func(string) error { sleep(upTo(slowest / 2)); return nil }
				n.hook(late, late)
			}
			for range 4 {
				lock := locker.Must(c.Acquire(t.Context(), locker.Request{Name: name, Fenced: true}))
				sleep(upTo(slowest))
				if seed%2 == 0 {
					c.n[dice.upTo(3)].Forget(name) // to be restored
				}
				match(t, lock.Renew(t.Context(), time.Hour))
				sleep(upTo(slowest))
				match(t, lock.Release(t.Context()))
				sleep(4 * slowest) // an acquire that has its answer raises the fence, and is undone then
				if c.free("after the release"); t.Failed() {
					t.Fatalf("seed %d", seed)
				}
			}
		})
	}
}
