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

	"github.com/holdfast-go/holdfast/internal/effort"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/strategies/redlock"
)

const (
	hangs  = 5 * time.Second // longer than any call waits
	lags   = 80 * ms         // longer than the others take, and shorter than any call waits
	hardly = 10 * ms         // about as long as the others take
)

// slowWalk is a kind of walk: the slow nodes, and the calls beside the walk.
type slowWalk struct {
	name     string
	nodes    int
	slow     int           // number of slow nodes
	takes    time.Duration // maximum duration of a slow node's calls
	resumes  bool          // the Lock is handed over; a renewal or another client at that moment may interfere
	renews   bool          // another goroutine renews all the while
	contends bool          // another client tries to take the lock all the while
	cuts     bool          // now and then the ctx of a call ends
}

var slowKinds = []slowWalk{
	{name: "none slow, renewed", nodes: 3, takes: hardly, renews: true},
	{name: "1 of 3 hangs", nodes: 3, slow: 1, takes: hangs, resumes: true},
	{name: "1 of 3 hangs, renewed", nodes: 3, slow: 1, takes: hangs, renews: true},
	{name: "1 of 3 hangs, cut", nodes: 3, slow: 1, takes: hangs, resumes: true, cuts: true},
	{name: "1 of 3 is hardly slow", nodes: 3, slow: 1, takes: hardly, resumes: true},
	{name: "1 of 3 is hardly slow, renewed", nodes: 3, slow: 1, takes: hardly, renews: true},
	{name: "1 of 3 is hardly slow, renewed, cut", nodes: 3, slow: 1, takes: hardly, renews: true, cuts: true},
	{name: "1 of 3 is hardly slow, contended", nodes: 3, slow: 1, takes: hardly, contends: true},
	{name: "1 of 3 lags, renewed, contended", nodes: 3, slow: 1, takes: lags, renews: true, contends: true},
	{name: "1 of 4 hangs", nodes: 4, slow: 1, takes: hangs, resumes: true},
	{name: "1 of 4 is hardly slow, renewed, contended", nodes: 4, slow: 1, takes: hardly, renews: true, contends: true},
	{name: "2 of 5 hang", nodes: 5, slow: 2, takes: hangs, resumes: true},
	{name: "2 of 5 hang, renewed, cut", nodes: 5, slow: 2, takes: hangs, renews: true, cuts: true},
	{name: "2 of 5 hang for a second, renewed", nodes: 5, slow: 2, takes: time.Second, renews: true},
	{name: "2 of 5 lag, renewed, contended", nodes: 5, slow: 2, takes: lags, renews: true, contends: true},
}

// Random walks through all operations of a Lock, while some nodes are slow, a quorum is not, and
// none fails. No call fails or waits for the slow ones, the lock is never lost, a quorum holds
// until the Deadline, and nothing is left behind. The seeds count from 0; a failing seed fails
// again.
func TestRandomCallsWithSlowNodes(t *testing.T) {
	t.Parallel()
	for _, kind := range slowKinds {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			for seed := range effort.Of[uint64](5, 5, 50) {
				synctest.Test(t, func(t *testing.T) {
					defer sleep(2 * time.Hour) // background calls end
					w := newSlowWalker(t, kind, seed)
					for range 3 {
						if w.hold(); t.Failed() {
							t.Fatalf("seed %d, nodes %v are slow", seed, w.slow)
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
	w := &slowWalker{T: t, kind: kind, seed: seed, dice: newDice(seed, 0), start: time.Now(), c: newCluster(t, kind.nodes, redlock.Config{})}
	w.slow = w.dice.random.Perm(kind.nodes)[:kind.slow]
	for i, n := range w.c.n {
		match(t, mint(n.Locker, i)) // all counters differ
		w.delay(i)
	}
	return w
}

// slowWalker acquires a lock again and again, and performs random operations on it.
type slowWalker struct {
	*testing.T
	kind  slowWalk
	seed  uint64
	dice  *dice
	start time.Time
	c     *cluster
	slow  []int

	lock  *locker.Lock
	fence int64 // the highest so far
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
	for n := 3 + w.dice.upTo(8); n > 0 && !w.Failed(); n-- {
		w.step()
	}
	stop()
	w.must("release", func() error { return w.lock.Release(w.Context()) })
	others.Wait()
	sleep(10 * w.kind.takes)
	w.c.free("after the release")
}

func (w *slowWalker) take() {
	req := locker.Request{Name: name, Owner: "me", TTL: ttl, Fenced: w.dice.upTo(2) == 0, Mode: locker.Mode(w.dice.upTo(2))}
	w.must(fmt.Sprintf("acquire, %v, fenced: %v", req.Mode, req.Fenced), func() (err error) {
		w.lock, err = w.c.Acquire(w.Context(), req)
		return err
	})
	if w.lock != nil && req.Fenced {
		if fence := w.lock.Fence(); fence < w.fence || fence == w.fence && req.Mode == locker.Exclusive {
			w.Errorf("token %d after %d", fence, w.fence)
		}
	}
}

// check demands that a quorum holds the Lock until its Deadline, as it says, and that its token did
// not go back.
func (w *slowWalker) check(after string) {
	if err := w.lock.Err(); err != nil {
		w.Errorf("lost after %s: %v", after, err)
		return
	}
	if fence := w.lock.Fence(); fence > 0 && fence < w.fence {
		w.Errorf("after %s: token %d after %d", after, fence, w.fence)
	}
	w.fence = max(w.fence, w.lock.Fence())
	deadline, mode, covered := w.lock.Deadline(), w.lock.Mode(), 0
	for _, node := range w.c.n {
		s := node.state()
		if s.Owner == "me" && s.Mode <= mode && !time.Now().Add(s.Left).Before(deadline) {
			covered++
		}
	}
	if all := len(w.c.n); covered <= all/2 {
		w.Errorf("after %s: %d of %d hold it, %v, until its Deadline in %v", after, covered, all, mode, time.Until(deadline))
	}
}

// soon is longer than any call except one waiting for a slow node.
const soon = 5 * time.Second

// must demands that a call succeeds, and soon.
func (w *slowWalker) must(what string, call func() error) {
	w.logf("%s", what)
	begin := time.Now()
	err := call()
	took := time.Since(begin)
	if err != nil {
		w.Errorf("%s: %v", what, err)
	}
	if took > soon {
		w.Errorf("%s took %v", what, took)
	}
	w.logf("%s: done after %v", what, took)
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
			w.logf("  node %d, %s %s: %v", i, when, what, takes)
			sleep(takes)
			return nil
		}
	}
	w.c.n[i].hook(delay("before"), delay("after"))
}

// step performs a random operation of a holder.
func (w *slowWalker) step() {
	type step struct {
		name string
		do   func()
	}
	steps := []step{
		{"renew", func() { w.renew(w.lock, w.dice, false) }},
		{"renew for longer", func() { w.renew(w.lock, w.dice, true) }},
		{"downgrade", func() { w.must("downgrade", func() error { return w.lock.Downgrade(w.Context()) }) }},
		{"upgrade", w.upgrade},
		{"upgrade", w.upgrade},
		{"nothing", func() { sleep(w.dice.lasts(20 * ms)) }},
	}
	if w.kind.resumes {
		steps = append(steps, step{"resume", w.resume})
	}
	if w.kind.cuts {
		steps = append(steps, step{"cut", w.cut})
	}
	next := steps[w.dice.upTo(len(steps))]
	next.do()
	w.check(next.name)
}

// renew demands that the lease lasts as long as the renewal asked, less the drift.
func (w *slowWalker) renew(lock *locker.Lock, d *dice, longer bool) {
	lasts := ttl
	if longer {
		lasts += d.lasts(time.Hour)
	}
	begin := time.Now()
	w.must("renew for "+lasts.String(), func() error {
		err := lock.Renew(w.Context(), lasts)
		if errors.Is(err, locker.ErrReleased) {
			err = nil // the walker released meanwhile
		}
		return err
	})
	if drift := lasts/50 + 2*time.Second; lock.Err() == nil && lock.Deadline().Before(begin.Add(lasts-drift)) {
		w.Errorf("renewed for %v, and %v are left", lasts, time.Until(lock.Deadline()))
	}
}

func (w *slowWalker) upgrade() {
	w.must("upgrade", func() error { return w.lock.Upgrade(w.Context()) })
}

// resume hands the Lock over, to this walker. The former holder releases it late.
func (w *slowWalker) resume() {
	sleep(50 * ms) // every node except the slow has answered: the Handle lists it
	old, handle := w.lock, w.lock.Handle()
	w.must("resume", func() error {
		next, err := locker.Resume(w.Context(), w.c, handle)
		if err == nil {
			w.lock = next
		}
		return err
	})
	if w.lock == old {
		return
	}
	old.Hold().MarkLost(errors.New("handed over"))
	go func() {
		sleep(7 * time.Second)
		_ = old.Release(bg)
	}()
}

// cut is a call whose ctx ends at some moment. Its outcome is unknown, and the lock is not lost.
func (w *slowWalker) cut() {
	call := []func(context.Context) error{w.lock.Upgrade, w.lock.Downgrade,
		func(ctx context.Context) error { return w.lock.Renew(ctx, time.Hour) }}[w.dice.upTo(3)]
	ctx, cancel := context.WithTimeout(w.Context(), w.dice.lasts(4*ms))
	defer cancel()
	w.must("cut", func() error {
		err := call(ctx)
		if errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, locker.ErrNotHeld) {
			return nil
		}
		return err
	})
}

// pause waits at random; false: ctx has ended.
func (d *dice) pause(ctx context.Context, upTo time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d.lasts(upTo)):
		return true
	}
}

func (w *slowWalker) renewAllTheWhile(ctx context.Context, lock *locker.Lock) {
	for d := newDice(w.seed, 1); d.pause(ctx, 20*ms); {
		w.renew(lock, d, d.upTo(3) == 0)
	}
}

// contend demands that nobody else gets the lock.
func (w *slowWalker) contend(ctx context.Context, lock *locker.Lock) {
	req := locker.Request{Name: name, Owner: "other", TTL: time.Minute, NoWait: true}
	sleep(20 * ms) // every node except the slow has the lock: no other gets it there
	for d := newDice(w.seed, 2); d.pause(ctx, 40*ms); {
		other, err := w.c.Acquire(w.Context(), req)
		if err != nil {
			continue // it is held, or a slow node's answer would decide
		}
		if lock.Err() == nil {
			w.Errorf("two hold at once")
		}
		_ = other.Release(bg)
	}
}

// logf logs an event and its time, for a walk that fails.
func (w *slowWalker) logf(format string, args ...any) {
	w.Logf("%10v  "+format, append([]any{time.Since(w.start).Round(time.Microsecond)}, args...)...)
}
