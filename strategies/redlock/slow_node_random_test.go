package redlock_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/effort"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/strategies/redlock"
)

const (
	hangs  = 5 * time.Second // longer than any call waits
	lags   = 80 * ms         // longer than the others take, and shorter than any call waits
	hardly = 10 * ms         // about as long as the others take
)

// slowWalk is a kind of walk: which nodes are slow, and what goes on.
type slowWalk struct {
	name     string
	nodes    int
	slow     func(d *dice) []int
	takes    time.Duration // for what a slow node is slow to do, at most
	resumes  bool          // the Lock is handed over; a renewal or another client at that moment may be in its way
	renews   bool          // another goroutine renews all the while
	contends bool          // another client tries to take the lock all the while
	cuts     bool          // now and then the ctx of a call ends
	reads    bool          // now and then there is a reader beside this one
}

var slowKinds = []slowWalk{
	{name: "none slow, renewed", nodes: 3, slow: someOf(3, 0), takes: hardly, renews: true},
	{name: "1 of 3 hangs", nodes: 3, slow: someOf(3, 1), takes: hangs, resumes: true},
	{name: "1 of 3 hangs, renewed", nodes: 3, slow: someOf(3, 1), takes: hangs, renews: true},
	{name: "1 of 3 hangs, cut", nodes: 3, slow: someOf(3, 1), takes: hangs, resumes: true, cuts: true},
	{name: "1 of 3 hangs, read", nodes: 3, slow: someOf(3, 1), takes: hangs, resumes: true, reads: true},
	{name: "1 of 3 is hardly slow", nodes: 3, slow: someOf(3, 1), takes: hardly, resumes: true},
	{name: "1 of 3 is hardly slow, renewed", nodes: 3, slow: someOf(3, 1), takes: hardly, renews: true},
	{name: "1 of 3 is hardly slow, renewed, cut", nodes: 3, slow: someOf(3, 1), takes: hardly, renews: true, cuts: true},
	{name: "1 of 3 is hardly slow, contended", nodes: 3, slow: someOf(3, 1), takes: hardly, contends: true},
	{name: "1 of 3 lags, renewed, contended", nodes: 3, slow: someOf(3, 1), takes: lags, renews: true, contends: true},
	{name: "1 of 4 hangs", nodes: 4, slow: someOf(4, 1), takes: hangs, resumes: true},
	{name: "1 of 4 is hardly slow, renewed, contended", nodes: 4, slow: someOf(4, 1), takes: hardly, renews: true, contends: true},
	{name: "2 of 5 hang", nodes: 5, slow: someOf(5, 2), takes: hangs, resumes: true},
	{name: "2 of 5 hang, renewed, cut", nodes: 5, slow: someOf(5, 2), takes: hangs, renews: true, cuts: true},
	{name: "2 of 5 hang, renewed, read", nodes: 5, slow: someOf(5, 2), takes: hangs, renews: true, reads: true},
	{name: "2 of 5 hang for a second, renewed", nodes: 5, slow: someOf(5, 2), takes: time.Second, renews: true},
	{name: "2 of 5 lag, renewed, contended", nodes: 5, slow: someOf(5, 2), takes: lags, renews: true, contends: true},
}

// Random walks through all that a Lock can do, while some nodes are slow, a quorum is not, and none
// fails: no call fails or waits for the slow ones, the lock is never lost, a quorum holds until the
// Deadline, and nothing is left behind. The seeds count from 0; one that fails fails again.
func TestRandomCallsWithSlowNodes(t *testing.T) {
	t.Parallel()
	for _, kind := range slowKinds {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			for seed := range effort.Of[uint64](5, 5, 50) {
				synctest.Test(t, func(t *testing.T) {
					defer sleep(2 * time.Hour) // what is behind ends
					w := newSlowWalker(t, kind, seed)
					for range 3 {
						if w.hold(); t.Failed() {
							t.Fatalf("seed %d, nodes %v are slow; the last events:\n%s", seed, w.slow, strings.Join(w.lastEvents(), "\n"))
						}
					}
				})
				if t.Failed() {
					return
				}
			}
		})
	}
}

func newSlowWalker(t *testing.T, kind slowWalk, seed uint64) *slowWalker {
	t.Helper()
	w := &slowWalker{T: t, kind: kind, seed: seed, start: time.Now(), nodes: overHooked(t, kind.nodes, redlock.Config{}).n}
	w.dice = newDice(seed, 0)
	w.slow = kind.slow(w.dice)
	w.locks = w.overNodes()
	for i := range w.nodes {
		w.delay(i)
	}
	return w
}

// overNodes makes the quorum over nodes that mint tokens. No two of their counters stand at the
// same.
func (w *slowWalker) overNodes() *redlock.Locker {
	var lockers []locker.Locker
	for i, n := range w.nodes {
		match(w.T, mint(n.Locker, i))
		lockers = append(lockers, &minting{hooked: n})
	}
	return locker.Must(redlock.New(lockers, redlock.Config{}))
}

// someOf picks k of n nodes.
func someOf(n, k int) func(d *dice) []int {
	return func(d *dice) []int { return d.random.Perm(n)[:k] }
}
