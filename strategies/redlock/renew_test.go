package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/strategies/redlock"
)

// state is what became of a node between the acquire and the next operation.
type state int

const (
	fine    state = iota
	forgot        // it lost its data
	stolen        // it lost its data, and another holds there now
	refuses       // it answers with an error that is none of a lock
	frozen        // it answers nothing
	never         // it refused the acquire: another held there, and holds no more
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
		n.set(func(n *node) { n.down = errDown })
	case frozen:
		n.freeze()
	}
}

// states calls f with every combination of states of n nodes where the acquire succeeded.
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

// won acquires at all nodes but those whose state is never, and then brings the states about.
func (c *cluster) won(all []state, req locker.Request) *locker.Lock {
	c.t.Helper()
	for i, s := range all {
		if s == never {
			other := c.nodes[i].Hold(locker.Request{Name: name, Owner: "another"})
			defer func() { match(c.t, other.Release(bg)) }()
		}
	}
	req.Owner = "me"
	lock := c.acquire(req)
	c.heldBy("me", len(all)-tally(all, never), "after the acquire")
	for i, s := range all {
		s.apply(c.nodes[i])
	}
	return lock
}

// A renewal needs the quorum; it says that the lock is lost only where that is certain; with the
// quorum, it restores the lock where it is missing, and there it counts from the next renewal.
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
	for i, n := range c.nodes {
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
				if got := c.nodes[i].top; (s == fine || s == forgot || s == never) && got < lock.Fence() {
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

	// The nodes come back; what was missed is made good for.
	for i, s := range all {
		n := c.nodes[i]
		switch s {
		case refuses:
			n.set(func(n *node) { n.down = nil })
		case frozen:
			n.melt()
		case stolen:
			n.Forget(name)
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

// A renewal that hangs at a node is not sent again, and its answer counts when it comes.
func TestRenewalsThatHangAreJoined(t *testing.T) {
	inMemory(t, 3, redlock.Config{AttemptTimeout: 100 * ms}, func(t *testing.T, c *cluster) {
		lock := c.acquire(locker.Request{})
		synctest.Wait()
		for _, n := range c.nodes[1:] {
			n.freeze()
		}
		for range 5 {
			only(t, lock.Renew(t.Context(), 0), locker.ErrUnknownOutcome, locker.ErrNotHeld)
		}
		setAll(c.nodes[1:], func(n *node) {
			check.Equal(t, "renewals at a node", n.calls[lease.OpRenew], 1)
		})
		time.AfterFunc(50*ms, c.nodes[2].melt)
		start := time.Now()
		match(t, lock.Renew(t.Context(), 0))
		took(t, start, 50*ms)
		c.nodes[1].melt()
		match(t, lock.Release(t.Context()))
	})
}

// A caller that is cancelled returns at once, and the Deadline stays; a TTL longer than that of the
// renewal under way is asked for by itself.
func TestRenewIsCancelled(t *testing.T) {
	inMemory(t, 3, redlock.Config{}, func(t *testing.T, c *cluster) {
		lock := c.acquire(locker.Request{})
		synctest.Wait()
		before := lock.Deadline()
		setAll(c.nodes, func(n *node) { n.delay = 300 * ms })
		ctx, cancel := context.WithTimeout(t.Context(), 100*ms)
		defer cancel()
		start := time.Now()
		err := lock.Renew(ctx, 0)
		match(t, err, context.DeadlineExceeded, locker.ErrUnknownOutcome)
		matchNot(t, err, locker.ErrNotHeld)
		if took := time.Since(start); took != 100*ms || !lock.Deadline().Equal(before) {
			t.Errorf("it took %v, and the Deadline moved by %v", took, lock.Deadline().Sub(before))
		}
		match(t, lock.Renew(t.Context(), time.Hour))
		check.AtLeast(t, "time until the Deadline", time.Until(lock.Deadline()), 50*time.Minute)
		match(t, lock.Release(t.Context()))
	})
}

// The release reaches all nodes. It succeeds with a quorum, says that the lock was lost only where
// that is certain, and waits for no more than it needs.
func TestRelease(t *testing.T) {
	t.Parallel()
	for _, of := range []struct{ n, quorum int }{{3, 2}, {3, 3}, {5, 3}} {
		t.Run(fmt.Sprintf("%d of %d", of.quorum, of.n), func(t *testing.T) {
			t.Parallel()
			states(of.n, of.quorum, func(t *testing.T, all []state) {
				if tally(all, fine) < of.quorum && tally(all, frozen) > 0 {
					return // the nodes' own strategy bounds it; those of this test wait for ever
				}
				inMemory(t, of.n, redlock.Config{Quorum: of.quorum}, func(t *testing.T, c *cluster) {
					lock := c.won(all, locker.Request{})
					ctx, cancel := context.WithCancel(t.Context())
					if len(all)%2 == 1 {
						cancel() // it stops nothing
					}
					defer cancel()
					start := time.Now()
					err := lock.Release(ctx)
					took(t, start, 0)
					switch done := tally(all, fine); {
					case done >= of.quorum:
						match(t, err)
					case done+tally(all, refuses) < of.quorum:
						match(t, err, locker.ErrLost)
					default:
						match(t, err, errDown)
						matchNot(t, err, locker.ErrNotHeld)
						if _, found := errors.AsType[*redlock.NodeError](err); !found {
							t.Errorf("%v names no node", err)
						}
					}
					for i, s := range all {
						if s == frozen {
							c.nodes[i].melt()
						}
					}
					c.heldBy("me", tally(all, refuses), "after the release")
				})
			}, t)
		})
	}
}

// A release that too many nodes do not answer has an unknown outcome, and is no loss.
func TestReleaseOfUnknownOutcome(t *testing.T) {
	inMemory(t, 3, redlock.Config{}, func(t *testing.T, c *cluster) {
		lock := c.acquire(locker.Request{})
		synctest.Wait()
		setAll(c.nodes[1:], func(n *node) { n.down = fmt.Errorf("%w: reset", locker.ErrUnknownOutcome) })
		only(t, lock.Release(t.Context()), locker.ErrUnknownOutcome, locker.ErrNotHeld)
		match(t, lock.Release(t.Context()), locker.ErrReleased)
	})
}

// A restored node that answers after the release is released.
func TestRestoreAfterTheRelease(t *testing.T) {
	inMemory(t, 3, redlock.Config{}, func(t *testing.T, c *cluster) {
		lock := c.acquire(locker.Request{Owner: "me"})
		synctest.Wait()
		c.nodes[0].Forget(name)
		succeeds(t, lock.Renew(t.Context(), 0))
		c.nodes[0].Forget(name)
		c.nodes[0].freeze()
		match(t, lock.Renew(t.Context(), 0))
		match(t, lock.Release(t.Context()))
		c.nodes[0].melt()
		c.free("after the node came back")
	})
}

// A renewal right after the acquire waits for the nodes that have not answered that yet: with them
// there is a quorum, although one of the first has failed.
func TestRenewalWaitsForLateNodes(t *testing.T) {
	inMemory(t, 3, redlock.Config{}, func(t *testing.T, c *cluster) {
		c.nodes[2].delay = 100 * ms
		lock := c.acquire(locker.Request{Owner: "me"})
		c.nodes[0].Forget(name)
		match(t, lock.Renew(t.Context(), 0))
		c.nodes[1].set(func(n *node) { n.down = errDown })
		match(t, lock.Err())
		c.heldBy("me", 3, "after the renewal")
		c.nodes[1].set(func(n *node) { n.down = nil })
		match(t, lock.Release(t.Context()))
		sleep(time.Second) // the slow one is still at it
		c.free("after the release")
	})
}
