package redlock_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/strategies/redlock"
)

// slowWalker takes a lock again and again, and does at random what a Lock can do.
type slowWalker struct {
	*testing.T
	kind  slowWalk
	seed  uint64
	dice  *dice
	start time.Time
	locks *redlock.Locker
	nodes []*hooked
	slow  []int

	lock  *locker.Lock
	fence int64 // the highest so far

	mu     sync.Mutex
	events []string
}

// hold is one lock from its acquire until nothing of it is left.
func (w *slowWalker) hold() {
	w.take()
	if w.Failed() {
		return
	}
	ctx, stop := context.WithCancel(w.Context())
	var others sync.WaitGroup
	if w.kind.renews {
		others.Go(func() { w.renewAllTheWhile(ctx, w.lock) })
	}
	if w.kind.contends {
		others.Go(func() { w.contend(ctx, w.lock) })
	}
	steps := w.steps()
	for n := 3 + w.dice.upTo(8); n > 0 && !w.Failed(); n-- {
		step := steps[w.dice.upTo(len(steps))]
		step.do()
		w.check(step.name)
	}
	stop()
	w.must("release", func() error { return w.lock.Release(w.Context()) })
	others.Wait()
	sleep(10 * w.kind.takes)
	nobodyHolds(w.T, w.nodes)
}

func (w *slowWalker) take() {
	req := locker.Request{Name: name, Owner: "me", TTL: ttl, Fenced: w.dice.upTo(2) == 0, Mode: locker.Mode(w.dice.upTo(2))}
	w.must(fmt.Sprintf("acquire, %v, fenced: %v", req.Mode, req.Fenced), func() (err error) {
		w.lock, err = w.locks.Acquire(w.Context(), req)
		return err
	})
	if w.lock != nil && req.Fenced {
		if fence := w.lock.Fence(); fence < w.fence || fence == w.fence && req.Mode == locker.Exclusive {
			w.failf("token %d after %d", fence, w.fence)
		}
	}
}

// check demands that the Lock is held, as it says, by a quorum until its Deadline, and that its
// token did not go back.
func (w *slowWalker) check(after string) {
	if err := w.lock.Err(); err != nil {
		w.failf("lost after %s: %v", after, err)
		return
	}
	if fence := w.lock.Fence(); fence > 0 && fence < w.fence {
		w.failf("after %s: token %d after %d", after, fence, w.fence)
	}
	w.fence = max(w.fence, w.lock.Fence())
	deadline, mode, covered := w.lock.Deadline(), w.lock.Mode(), 0
	for _, node := range w.nodes {
		if holdsUntil(node, mode, deadline) {
			covered++
		}
	}
	if all := len(w.nodes); covered <= all/2 {
		w.failf("after %s: %d of %d hold it, %v, until its Deadline in %v", after, covered, all, mode, time.Until(deadline))
	}
}

// holdsUntil reports whether a node holds for the walker until then. Beside a reader that is named
// first it may.
func holdsUntil(n *hooked, mode locker.Mode, then time.Time) bool {
	s, _ := n.Inspect(bg, name)
	switch {
	case !s.Held, mode == locker.Exclusive && s.Mode == locker.Shared:
		return false
	case s.Owner == "me":
		return !time.Now().Add(s.Left).Before(then)
	default:
		return s.Owner == "reader"
	}
}

// soon is longer than any call that waits for no slow node.
const soon = 5 * time.Second

// must demands that a call succeeds, and soon.
func (w *slowWalker) must(what string, call func() error) {
	w.eventf("%s", what)
	begin := time.Now()
	err := call()
	took := time.Since(begin)
	if err != nil {
		w.failf("%s: %v", what, err)
	}
	if took > soon {
		w.failf("%s took %v", what, took)
	}
	w.eventf("%s: done after %v", what, took)
}

// delay makes all calls of a node take time, before they are executed and after.
func (w *slowWalker) delay(i int) {
	d, slow := newDice(w.seed, uint64(10+i)), slices.Contains(w.slow, i)
	delay := func(when string) func(string) error {
		return func(what string) error {
			takes := d.lasts(3 * ms)
			switch {
			case d.upTo(4) == 0:
				takes = 0
			case slow && d.upTo(3) == 0:
				takes = d.lasts(w.kind.takes)
			}
			w.eventf("  node %d, %s %s: %v", i, when, what, takes)
			sleep(takes)
			return nil
		}
	}
	w.nodes[i].hook(delay("before"), delay("after"))
}

func (w *slowWalker) eventf(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events = append(w.events, fmt.Sprintf("%10v  ", time.Since(w.start).Round(time.Microsecond))+fmt.Sprintf(format, args...))
}

func (w *slowWalker) failf(format string, args ...any) {
	w.Helper()
	w.eventf("FAILED: "+format, args...)
	w.Errorf(format, args...)
}

func (w *slowWalker) lastEvents() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.events[max(0, len(w.events)-120):]
}
