package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/effort"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/lockertest"
	"github.com/holdfast-go/holdfast/strategies/redlock"
)

// outcome is a node's reaction to an acquire.
type outcome int

const (
	ok outcome = iota
	held
	failed
	hung
)

func (o outcome) String() string { return [...]string{"ok", "held", "error", "hung"}[o] }

// expectation is rule's result for an attempt.
type expectation struct {
	err error         // nil: a lock; locker.ErrNotAcquired; errDown: an outage
	at  time.Duration // when it is known; -1: not before AttemptTimeout
}

// rule is the algorithm written down once more, for one attempt with the given outcome and time of
// each node. A lock: quorum nodes said yes. Out of reach: too many others for a quorum. The cause
// is contention if by then only refusals stood in the way, or if the nodes with yes or "held" make
// a quorum; answers that may yet complete it are awaited for as long again.
func rule(outcomes []outcome, at []time.Duration, quorum int) expectation {
	n := len(outcomes)
	order := make([]int, 0, n)
	for i, o := range outcomes {
		if o != hung {
			order = append(order, i)
		}
	}
	slices.SortFunc(order, func(a, b int) int { return int(at[a] - at[b]) })
	count := func(upTo time.Duration) (yes, no, bad int) {
		for _, i := range order {
			if at[i] > upTo {
				continue
			}
			switch outcomes[i] {
			case ok:
				yes++
			case held:
				no++
			default:
				bad++
			}
		}
		return yes, no, bad
	}
	for _, i := range order {
		yes, no, bad := count(at[i])
		if yes >= quorum {
			return expectation{nil, at[i]}
		}
		if n-no-bad >= quorum {
			continue
		}
		// Out of reach.
		if bad == 0 {
			return expectation{locker.ErrNotAcquired, at[i]}
		}
		for _, j := range order {
			if at[j] < at[i] || at[j] > 2*at[i] {
				continue
			}
			yes, no, bad = count(at[j])
			if no > 0 && yes+no >= quorum {
				return expectation{locker.ErrNotAcquired, at[j]}
			}
			if no == 0 || n-bad < quorum {
				return expectation{errDown, at[j]}
			}
		}
		return expectation{errDown, 2 * at[i]}
	}
	if yes, no, _ := count(time.Hour); no > 0 && yes+no >= quorum {
		return expectation{locker.ErrNotAcquired, -1}
	}
	return expectation{errDown, -1}
}

// combinations calls f with each choice of n values.
func combinations[T any](n int, of []T, f func([]T)) {
	chosen := make([]T, n)
	var choose func(i int)
	choose = func(i int) {
		if i == n {
			f(slices.Clone(chosen))
			return
		}
		for _, v := range of {
			chosen[i] = v
			choose(i + 1)
		}
	}
	choose(0)
}

// tally counts the values listed in of.
func tally[T comparable](all []T, of ...T) (n int) {
	for _, v := range all {
		if slices.Contains(of, v) {
			n++
		}
	}
	return n
}

// Every combination of outcomes, at up to 5 nodes, for every quorum, fenced and not, in a random
// order of answers. Of five nodes, which one does what is covered by full tests only: the order of
// the answers is random anyway.
func TestAllOutcomes(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 2, 3, 5} {
		for quorum := n/2 + 1; quorum <= n; quorum++ {
			t.Run(fmt.Sprintf("%d of %d", quorum, n), func(t *testing.T) {
				t.Parallel()
				seed := uint64(n*10 + quorum)
				random := rand.New(rand.NewPCG(seed, 1))
				combinations(n, []outcome{ok, held, failed, hung}, func(outcomes []outcome) {
					if n == 5 && !effort.Full() && !slices.IsSorted(outcomes) {
						return
					}
					at := make([]time.Duration, n)
					for i, p := range random.Perm(n) {
						at[i] = []time.Duration{10 * ms, 15 * ms, 26 * ms, 41 * ms, 60 * ms}[p] // none is twice another
					}
					fenced := random.IntN(2) == 0
					t.Run(fmt.Sprintf("%v at %v fenced %v", outcomes, at, fenced), func(t *testing.T) {
						synctest.Test(t, func(t *testing.T) { oneAttempt(t, outcomes, at, quorum, fenced) })
					})
				})
			})
		}
	}
}

func oneAttempt(t *testing.T, outcomes []outcome, at []time.Duration, quorum int, fenced bool) {
	t.Helper()
	c := newCluster(t, len(outcomes), redlock.Config{Quorum: quorum, AttemptTimeout: 700 * ms})
	for i, o := range outcomes {
		n := c.n[i]
		n.delay = at[i]
		switch o {
		case ok:
			if fenced { // the raising is another matter
				match(t, mint(n.Locker, 1))
			}
		case held:
			n.Hold(locker.Request{Name: name, Owner: "another", TTL: time.Hour})
		case failed:
			n.down = errDown
		case hung:
			n.delay = 0
			n.freeze()
		}
	}
	want := rule(outcomes, at, quorum)
	start := time.Now()
	lock, err := c.Acquire(t.Context(), locker.Request{Name: name, TTL: ttl, Owner: "me", Fenced: fenced})
	took := time.Since(start)

	// The undo of a failed attempt ends within the answers of its nodes.
	slowest := want.at
	if want.err != nil {
		slowest += slices.Max(at)
	}
	switch {
	case want.at < 0 && (took < 700*ms || took > 700*ms+slices.Max(at)):
		t.Errorf("it took %v, want AttemptTimeout, 700ms", took)
	case want.at >= 0 && (took < want.at || took > slowest):
		t.Errorf("it took %v, want %v", took, want.at)
	}
	switch {
	case want.err == nil:
		match(t, err)
		if lock == nil {
			t.Fatal("no lock")
		}
		check.Equal(t, "has a token", lock.Fence() > 0, fenced)
	case lock != nil:
		t.Fatalf("a lock, want %v", want.err)
	case want.err == locker.ErrNotAcquired: //nolint:errorlint // it says which
		match(t, err, locker.ErrNotAcquired)
		matchNot(t, err, locker.ErrUnknownOutcome, errDown)
		if refusal, ok := errors.AsType[*locker.ContentionError](err); !ok || refusal.Owner != "another" || refusal.Channel.IsZero() || refusal.Jitter != 10*ms {
			t.Errorf("refusal %+v", refusal)
		}
	default:
		matchNot(t, err, locker.ErrNotAcquired, locker.ErrNotHeld)
		check.Equal(t, fmt.Sprintf("Transient(%v)", err), driver.Transient(err), true)
		checkNodeErrors(t, err, outcomes, at, want.at)
	}

	synctest.Wait()
	sleep(time.Second) // every answer has arrived
	if want.err == nil {
		c.heldBy("me", tally(outcomes, ok), "once all have answered")
	} else {
		c.heldBy("me", 0, "after a losing attempt")
	}
	for _, n := range c.n {
		n.melt()
	}
	if want.err == nil {
		c.heldBy("me", tally(outcomes, ok, hung), "after the hung ones came back")
		sleep(time.Second)
		match(t, lock.Release(t.Context()))
		sleep(time.Second)
	}
	c.heldBy("me", 0, "at the end")
	for i, n := range c.n {
		if o := outcomes[i]; (o == ok || o == hung) && (n.count("undo") > 0) == (want.err == nil) {
			t.Errorf("node %d (%v): undone quietly %d times, released %d times", i, o, n.count("undo"), n.count("release"))
		}
	}
	check.Equal(t, "holds of the other that are left", len(c.at("another")), tally(outcomes, held))
}

// checkNodeErrors demands that an outage names each node failed or unanswered by when, a failed one
// first.
func checkNodeErrors(t *testing.T, err error, outcomes []outcome, at []time.Duration, when time.Duration) {
	t.Helper()
	if when < 0 {
		when = 700 * ms
	}
	var want, got []string
	for i, o := range outcomes {
		switch {
		case o == hung || at[i] > when:
			want = append(want, fmt.Sprintf("node %d: no answer yet", i))
		case o == failed:
			want = append(want, fmt.Sprintf("node %d: %v", i, errDown))
		}
	}
	missed, _ := errors.AsType[*redlock.QuorumError](err)
	if missed == nil {
		t.Fatalf("%v has no *QuorumError", err)
	}
	for _, n := range missed.Nodes {
		n.Name, n.Address = "", ""
		got = append(got, n.Error())
	}
	check.EqualSlices(t, "node errors", got, want)
	if first, found := errors.AsType[*redlock.NodeError](err); !found || errors.Is(first, locker.ErrUnknownOutcome) && errors.Is(err, errDown) {
		t.Errorf("the first node error is %v, want one that was down", first)
	}
}

// The Deadline is the quorum-th latest of the nodes', and must leave MinValidity.
func TestValidity(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
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
		t.Run(fmt.Sprint(tt.took, tt.minValidity), func(t *testing.T) {
			inMemory(t, 5, redlock.Config{MinValidity: tt.minValidity, AttemptTimeout: ttl}, func(t *testing.T, c *cluster) {
				hookAll(c.n[2:4], nil, slow(tt.took, "acquire")) // their leases begin when they are asked
				c.n[4].hook(slow(ttl, "acquire"), nil)
				start := time.Now()
				lock, err := c.Acquire(t.Context(), locker.Request{Name: name, TTL: ttl})
				if tt.ok {
					match(t, err)
					took(t, start, tt.took)
					check.Equal(t, "time until the Deadline", lock.Deadline().Sub(start), ttl)
					hookAll(c.n, nil, nil)
					_ = lock.Release(t.Context()) // one node has not answered, and leases have ended
				} else {
					match(t, err, locker.ErrLost)
					matchNot(t, err, locker.ErrNotAcquired, locker.ErrUnknownOutcome)
					check.Equal(t, fmt.Sprintf("Transient(%v)", err), driver.Transient(err), true)
				}
				sleep(2 * ttl)
				c.free("in the end")
			})
		})
	}
}

// A TTL is in whole milliseconds, as the nodes' TTLs are.
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

// All nodes store the same owner: the Request's, that of ctx, or a fresh one.
func TestOwner(t *testing.T) {
	inMemory(t, 3, redlock.Config{}, func(t *testing.T, c *cluster) {
		fresh := c.acquire(locker.Request{})
		c.heldBy(fresh.Owner(), 3, "a fresh owner")
		succeeds(t, fresh.Release(t.Context())) // it returns once a quorum is free
		again := c.acquire(locker.Request{})
		check.Equal(t, "two owners are alike", again.Owner() == fresh.Owner(), false)
		succeeds(t, again.Release(t.Context()))
		lock := locker.Must(c.Acquire(locker.WithOwner(t.Context(), "of ctx"), locker.Request{Name: name, Note: "hello"}))
		c.heldBy("of ctx", 3, "the owner of ctx")
		check.Equal(t, "note", locker.Must(c.Inspect(t.Context(), name)).Note, "hello")
		succeeds(t, lock.Release(t.Context()))
	})
}

// Three Lockers for one server are no quorum. The error says so, rather than report another holder.
func TestNodesThatAreOneServer(t *testing.T) {
	inMemory(t, 1, redlock.Config{}, func(t *testing.T, c *cluster) {
		nodes := []locker.Locker{wraps{c.n[0]}, locker.Func(c.n[0].Acquire), c.n[0]}
		lock, err := locker.Must(redlock.New(nodes, redlock.Config{})).Acquire(t.Context(), locker.Request{Name: name})
		check.Equal(t, "lock of three nodes that are one server", lock, nil)
		match(t, err, locker.ErrInvalid)
		matchNot(t, err, locker.ErrNotAcquired)
		if !strings.Contains(err.Error(), "one server") || driver.Transient(err) {
			t.Errorf("%v, want that the nodes are one server, for good", err)
		}
	})
}

// A lock of the same owner at servers that share nothing is another's.
func TestSameOwnerIsNotOneServer(t *testing.T) {
	tests := map[string][]int{"a quorum": {0, 1}, "all": {0, 1, 2}, "all but one need": {1, 2}}
	eachInMemory(t, 3, redlock.Config{}, tests, func(t *testing.T, c *cluster, held []int) {
		for _, i := range held {
			c.n[i].Hold(locker.Request{Name: name, Owner: "me", TTL: time.Hour})
		}
		match(t, check.ErrOf(c.Acquire(t.Context(), locker.Request{Name: name, Owner: "me"})), locker.ErrNotAcquired)
		match(t, check.ErrOf(c.Acquire(locker.WithOwner(t.Context(), "me"), locker.Request{Name: name})), locker.ErrNotAcquired)
	})
}

// A node lock that has ended before the quorum is reached does not count for it.
func TestNodeLockThatEndsWhileGathering(t *testing.T) {
	inMemory(t, 3, redlock.Config{}, func(t *testing.T, c *cluster) {
		c.n[1].hook(slow(100*ms, "acquire"), nil)
		c.n[2].hook(fails(errDown, "acquire"), nil)
		time.AfterFunc(50*ms, func() { c.n[0].Expire(name) })
		if lock, err := c.Acquire(t.Context(), locker.Request{Name: name, TTL: ttl, Owner: "me"}); err == nil {
			c.n[2].hook(nil, nil)
			c.excludes(lock, "after a node lock had ended before the quorum was won")
		}
	})
}

// Hanging nodes cost nothing while a quorum agrees; without a quorum of answers it is an outage.
func TestInspectWithoutAllNodes(t *testing.T) {
	inMemory(t, 3, redlock.Config{AttemptTimeout: 100 * ms}, func(t *testing.T, c *cluster) {
		lock := c.acquire(locker.Request{Owner: "me"})
		c.n[0].freeze()
		start := time.Now()
		s := locker.Must(c.Inspect(t.Context(), name))
		took(t, start, 0)
		check.Equal(t, "owner", s.Owner, "me")
		c.n[1].freeze()
		_, err := c.Inspect(t.Context(), name)
		match(t, err, locker.ErrUnknownOutcome)
		took(t, start, 100*ms)
		if op, ok := errors.AsType[*locker.OpError](err); !ok || op.Op != "inspect" {
			t.Errorf("%v is of another operation", err)
		}
		// One says held, one says free: the silent one would decide.
		c.n[1].melt()
		c.n[1].Forget(name)
		s, err = c.Inspect(t.Context(), name)
		match(t, err, locker.ErrUnknownOutcome)
		check.Equal(t, "state beside an error", s, (locker.State{}))
		c.n[2].Forget(name) // now two say free
		match(t, check.ErrOf(c.Inspect(t.Context(), name)))
		c.n[0].melt()
		c.n[1].Hold(locker.Request{Name: name, Owner: "other", TTL: ttl}) // all differ: nobody has a quorum
		check.Equal(t, "state", locker.Must(c.Inspect(t.Context(), name)), (locker.State{}))
		match(t, lock.Release(t.Context()), locker.ErrLost)
	})
}

// If the caller leaves, the error is its ctx's, not a failure of the nodes.
func TestInspectIsCancelled(t *testing.T) {
	inMemory(t, 3, redlock.Config{}, func(t *testing.T, c *cluster) {
		for _, n := range c.n {
			n.freeze()
		}
		cause := errors.New("the user left")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(50*ms, func() { cancel(cause) })
		start := time.Now()
		_, err := c.Inspect(ctx, name)
		match(t, err, context.Canceled, cause)
		took(t, start, 50*ms)
		_, err = c.Inspect(t.Context(), name) // AttemptTimeout is not the caller's
		matchNot(t, err, context.DeadlineExceeded)
	})
}

// A node behind middleware is inspected, as locker.Inspect does. Too many nodes without Inspect are
// an error.
func TestInspectsWhatIsInspector(t *testing.T) {
	t.Parallel()
	plain := func() locker.Locker { return locker.Func(lockertest.New().Acquire) }
	behind := func() locker.Locker { return wraps{lockertest.New()} }
	l := locker.Must(redlock.New([]locker.Locker{behind(), behind(), behind()}, redlock.Config{}))
	locker.Must(l.Acquire(t.Context(), locker.Request{Name: name, Owner: "me"}))
	check.Equal(t, "owner", locker.Must(l.Inspect(t.Context(), name)).Owner, "me")
	l = locker.Must(redlock.New([]locker.Locker{plain(), plain(), behind()}, redlock.Config{}))
	match(t, check.ErrOf(l.Inspect(t.Context(), name)), errors.ErrUnsupported)
	match(t, check.ErrOf(l.Inspect(t.Context(), "")), locker.ErrInvalid)
}
