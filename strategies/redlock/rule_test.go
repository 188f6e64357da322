package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/effort"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/strategies/redlock"
)

// outcome is what a node does when it is asked.
type outcome int

const (
	ok outcome = iota
	held
	failed
	hung
)

func (o outcome) String() string { return [...]string{"ok", "held", "error", "hung"}[o] }

// expectation is what the rule says of an attempt.
type expectation struct {
	err error         // nil: a lock; locker.ErrNotAcquired; errDown: an outage
	at  time.Duration // when it is known; -1: not before AttemptTimeout
}

// rule is the algorithm, written down once more, for one attempt at nodes that do what their
// outcome says, each at its own time. A lock: quorum nodes said yes. Out of reach: so many said
// something else that quorum is impossible. It was out of reach because of others where nothing but
// refusals stood in the way by then, or where those that said yes or "held" make a quorum; answers
// that may yet make them one are waited for as long again.
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

// combinations calls f with each way to choose n values.
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

// tally counts the values that are one of these.
func tally[T comparable](all []T, of ...T) (n int) {
	for _, v := range all {
		if slices.Contains(of, v) {
			n++
		}
	}
	return n
}

// Every combination of outcomes, at up to 5 nodes, for every quorum, fenced and not, in a random
// order of answers. Which of five nodes it is that does what is left out unless tests do all that
// they can: the order of the answers is random anyway.
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
		n := c.nodes[i]
		n.delay = at[i]
		switch o {
		case held:
			n.Hold(locker.Request{Name: name, Owner: "another", TTL: time.Hour})
		case failed:
			n.down = errDown
		case hung:
			n.delay = 0
			n.freeze()
		}
	}
	if fenced {
		for i, n := range c.nodes { // the raising is another matter
			if outcomes[i] == ok {
				match(t, mint(n.Locker, 1))
			}
		}
	}
	want := rule(outcomes, at, quorum)
	start := time.Now()
	lock, err := c.Acquire(t.Context(), locker.Request{Name: name, TTL: ttl, Owner: "me", Fenced: fenced})
	took := time.Since(start)

	// What the losing attempt won is undone within the answers of those nodes.
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
	sleep(time.Second) // all that do answer have answered
	if want.err == nil {
		c.heldBy("me", tally(outcomes, ok), "once all have answered")
	} else {
		c.heldBy("me", 0, "after a losing attempt")
	}
	for i, n := range c.nodes { // the hung ones go on
		if outcomes[i] == hung {
			n.melt()
		}
	}
	if want.err == nil {
		c.heldBy("me", tally(outcomes, ok, hung), "after the hung ones came back")
		sleep(time.Second)
		match(t, lock.Release(t.Context()))
		sleep(time.Second)
	}
	c.heldBy("me", 0, "at the end")
	for i, n := range c.nodes {
		if o := outcomes[i]; (o == ok || o == hung) && (n.giving > 0) == (want.err == nil) {
			t.Errorf("node %d (%v): undone quietly %d times, released %d times", i, o, n.giving, n.woken)
		}
	}
	check.Equal(t, "holds of the other that are left", c.holders()["another"], tally(outcomes, held))
}

// checkNodeErrors demands that an outage names the nodes that had failed or not answered by then.
func checkNodeErrors(t *testing.T, err error, outcomes []outcome, at []time.Duration, when time.Duration) {
	t.Helper()
	missed, found := errors.AsType[*redlock.QuorumError](err)
	if !found {
		t.Fatalf("%v has no *QuorumError", err)
	}
	if when < 0 {
		when = 700 * ms
	}
	var want, got []string
	for i, o := range outcomes {
		switch {
		case o == hung || at[i] > when:
			want = append(want, fmt.Sprintf("%d unanswered", i))
		case o == failed:
			want = append(want, fmt.Sprintf("%d down", i))
		}
	}
	for _, n := range missed.Nodes {
		switch {
		case errors.Is(n, locker.ErrUnknownOutcome):
			got = append(got, fmt.Sprintf("%d unanswered", n.Node))
		case errors.Is(n, errDown):
			got = append(got, fmt.Sprintf("%d down", n.Node))
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("node errors %v, want %v", got, want)
	}
	if first, found := errors.AsType[*redlock.NodeError](err); !found || errors.Is(first, locker.ErrUnknownOutcome) && errors.Is(err, errDown) {
		t.Errorf("the first node error is %v, want one that was down", first)
	}
}

// mint makes the node's counter stand at to.
func mint(l locker.Locker, to int) error {
	for range to {
		lock, err := l.Acquire(bg, locker.Request{Name: name, Fenced: true})
		if err != nil {
			return err
		}
		if err := lock.Release(bg); err != nil {
			return err
		}
	}
	return nil
}

var bg = context.Background()
