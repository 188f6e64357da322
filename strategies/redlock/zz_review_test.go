package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lockertest"
	"github.com/holdfast-go/holdfast/middleware/retry"
	"github.com/holdfast-go/holdfast/providers/goredis"
	"github.com/holdfast-go/holdfast/strategies/redlock"
	"github.com/holdfast-go/holdfast/strategies/reentrant"
)

// hooked is a node in memory whose calls a test delays or fails, before or after they are executed.
type hooked struct {
	*lockertest.Locker

	mu            sync.Mutex
	before, after func(what string) error
}

func (n *hooked) hook(before, after func(what string) error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.before, n.after = before, after
}

func (n *hooked) run(before bool, what string) error {
	n.mu.Lock()
	f := n.after
	if before {
		f = n.before
	}
	n.mu.Unlock()
	if f == nil {
		return nil
	}
	return f(what)
}

func (n *hooked) Acquire(ctx context.Context, req locker.Request) (*locker.Lock, error) {
	what := "acquire"
	if !req.Resume.IsZero() {
		what = "resume"
	}
	if err := n.run(true, what); err != nil {
		return nil, err
	}
	lock, err := n.Locker.Acquire(context.WithoutCancel(ctx), req)
	if err == nil {
		locker.WrapLease(lock, func(inner locker.Lease) locker.Lease { return &hookedLease{inner, n} })
	}
	if late := n.run(false, what); late != nil {
		return nil, late
	}
	return lock, err
}

type hookedLease struct {
	locker.Lease
	node *hooked
}

func (l *hookedLease) Do(ctx context.Context, op locker.Op) (locker.Term, error) {
	if err := l.node.run(true, op.Kind.String()); err != nil {
		return locker.Term{}, err
	}
	term, err := l.Lease.Do(context.WithoutCancel(ctx), op)
	if late := l.node.run(false, op.Kind.String()); late != nil {
		return locker.Term{}, late
	}
	return term, err
}

// fails fails these operations; slow makes them take d.
func fails(err error, ops ...string) func(string) error {
	return func(what string) error {
		for _, op := range ops {
			if op == what {
				return err
			}
		}
		return nil
	}
}

func slow(d time.Duration, ops ...string) func(string) error {
	return func(what string) error {
		for _, op := range ops {
			if op == what {
				sleep(d)
			}
		}
		return nil
	}
}

type hookedCluster struct {
	*redlock.Locker
	n []*hooked
}

func overHooked(t *testing.T, n int, cfg redlock.Config) *hookedCluster {
	t.Helper()
	c := &hookedCluster{}
	var lockers []locker.Locker
	for range n {
		node := &hooked{Locker: lockertest.New()}
		c.n = append(c.n, node)
		lockers = append(lockers, node)
	}
	l, err := redlock.New(lockers, cfg)
	if err != nil {
		t.Fatal(err)
	}
	c.Locker = l
	return c
}

func inHooked(t *testing.T, n int, cfg redlock.Config, f func(t *testing.T, c *hookedCluster)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		defer sleep(time.Hour) // what is behind ends
		f(t, overHooked(t, n, cfg))
	})
}

func (c *hookedCluster) take(t *testing.T, req locker.Request) *locker.Lock {
	t.Helper()
	req.Name = name
	if req.TTL == 0 {
		req.TTL = ttl
	}
	lock, err := c.Acquire(t.Context(), req)
	if err != nil {
		t.Fatalf("acquire: %v", err)
	}
	synctest.Wait()
	return lock
}

func (c *hookedCluster) at(owner string) (where []int) {
	for i, n := range c.n {
		if s, err := n.Inspect(bg, name); err == nil && s.Held && s.Owner == owner {
			where = append(where, i)
		}
	}
	return where
}

// excludes demands that no other can have the lock while held says that it is held.
func (c *hookedCluster) excludes(t *testing.T, held *locker.Lock, when string) {
	t.Helper()
	if held.Err() != nil {
		return // it said so
	}
	other, err := c.Acquire(t.Context(), locker.Request{Name: name, TTL: time.Minute, Owner: "other"})
	if err == nil && held.Err() == nil {
		t.Errorf("%s: two hold at once: the first has %v left and is at nodes %v, mode %v; the other is at %v", when,
			time.Until(held.Deadline()), c.at("me"), held.Mode(), c.at("other"))
	}
	if err == nil {
		_ = other.Release(bg)
	}
}

// A downgrade whose answers come after its ctx ended (or after AttemptTimeout) succeeds at every node; mend then releases
// every part, and nobody tells the Lock.
func TestReviewLateDowngradeReleasesAll(t *testing.T) {
	inHooked(t, 3, redlock.Config{}, func(t *testing.T, c *hookedCluster) {
		lock := c.take(t, locker.Request{Owner: "me"})
		for _, n := range c.n {
			n.hook(slow(50*ms, "convert"), nil)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*ms)
		defer cancel()
		if err := lock.Downgrade(ctx); err == nil {
			t.Fatal("the downgrade is meant to be cut off")
		}
		sleep(time.Second)
		if lock.Err() == nil && len(c.at("me")) < 2 {
			t.Errorf("the Lock says it is held for %v more, and is at nodes %v", time.Until(lock.Deadline()), c.at("me"))
		}
		c.excludes(t, lock, "after a downgrade that was cut off")
	})
}

// The same by AttemptTimeout alone: nodes that are slow once.
func TestReviewSlowDowngradeReleasesAll(t *testing.T) {
	inHooked(t, 3, redlock.Config{}, func(t *testing.T, c *hookedCluster) {
		lock := c.take(t, locker.Request{Owner: "me"})
		for _, n := range c.n {
			n.hook(slow(1500*ms, "convert"), nil)
		}
		if err := lock.Downgrade(t.Context()); err == nil {
			t.Fatal("the downgrade is meant to time out")
		}
		sleep(2 * time.Second)
		c.excludes(t, lock, "after a downgrade that timed out")
	})
}

// An upgrade whose answers come late, and that cannot be taken back: all parts are released without a word.
func TestReviewLateUpgradeReleasesAll(t *testing.T) {
	inHooked(t, 3, redlock.Config{}, func(t *testing.T, c *hookedCluster) {
		lock := c.take(t, locker.Request{Owner: "me", Mode: locker.Shared})
		unknown := fmt.Errorf("cut: %w", locker.ErrUnknownOutcome)
		for _, n := range c.n {
			n.hook(slow(50*ms, "convert"), fails(unknown, "convert"))
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*ms)
		defer cancel()
		err := lock.Upgrade(ctx)
		sleep(time.Second)
		if lock.Err() == nil && len(c.at("me")) < 2 {
			t.Errorf("upgrade: %v; the Lock says it is held for %v more, and is at nodes %v", err, time.Until(lock.Deadline()), c.at("me"))
		}
		c.excludes(t, lock, "after an upgrade of unknown outcome")
	})
}

// C missed one long renewal, and B one downgrade (definitely not executed). A is then released for its mode: the Deadline
// that A and B carried stays.
func TestReviewDeadlineAfterFailedDowngrade(t *testing.T) {
	inHooked(t, 3, redlock.Config{}, func(t *testing.T, c *hookedCluster) {
		lock := c.take(t, locker.Request{Owner: "me"})
		c.n[2].hook(fails(errDown, "renew"), nil)
		match(t, lock.Renew(t.Context(), time.Hour))
		c.n[1].hook(fails(errDown, "convert"), nil)
		c.n[2].hook(fails(errDown, "convert"), nil)
		if err := lock.Downgrade(t.Context()); err == nil {
			t.Fatal("the downgrade is meant to miss the quorum")
		}
		synctest.Wait()
		c.n[1].hook(nil, nil)
		c.n[2].hook(nil, nil)
		sleep(31 * time.Second) // C's lease of 30 s is over
		c.excludes(t, lock, "after a downgrade that missed the quorum")
	})
}

// The same where the conversion wins: a quorum was upgraded, A and C, of which C had missed the long renewal. B, still
// shared, is released, and with it goes the Deadline.
func TestReviewDeadlineAfterWonUpgrade(t *testing.T) {
	inHooked(t, 3, redlock.Config{}, func(t *testing.T, c *hookedCluster) {
		lock := c.take(t, locker.Request{Owner: "me", Mode: locker.Shared})
		c.n[2].hook(fails(errDown, "renew"), nil)
		match(t, lock.Renew(t.Context(), time.Hour))
		c.n[2].hook(nil, nil)
		c.n[1].hook(fails(errDown, "convert"), nil)
		match(t, lock.Upgrade(t.Context()))
		synctest.Wait()
		if lock.Mode() != locker.Exclusive {
			t.Fatal("not exclusive")
		}
		c.n[1].hook(nil, nil)
		sleep(31 * time.Second)
		c.excludes(t, lock, "after an upgrade that won")
	})
}

// Nodes that lose the hold and are restored get the lease of the renewal that restored them: shorter than the Deadline.
func TestReviewDeadlineAfterRestore(t *testing.T) {
	inHooked(t, 3, redlock.Config{}, func(t *testing.T, c *hookedCluster) {
		lock := c.take(t, locker.Request{Owner: "me"})
		match(t, lock.Renew(t.Context(), time.Hour))
		for _, i := range []int{0, 1} {
			c.n[i].Forget(name)
			match(t, lock.Renew(t.Context(), 0))
			synctest.Wait()
		}
		match(t, lock.Renew(t.Context(), 0)) // all is restored and counts
		sleep(31 * time.Second)
		c.excludes(t, lock, "after two nodes were restored")
	})
}

// A resume takes the parts one by one; the old holder restores them behind it. Both have a quorum, for ever.
func TestReviewResumeAndRestore(t *testing.T) {
	inHooked(t, 3, redlock.Config{AttemptTimeout: time.Second}, func(t *testing.T, c *hookedCluster) {
		old := c.take(t, locker.Request{Owner: "me", Mode: locker.Shared})
		handle := old.Handle()
		c.n[1].hook(slow(100*ms, "resume"), nil)
		c.n[2].hook(func(what string) error {
			if what == "resume" {
				sleep(100 * ms)
				return errDown
			}
			return nil
		}, nil)
		type result struct {
			lock *locker.Lock
			err  error
		}
		got := make(chan result, 1)
		go func() {
			lock, err := locker.Resume(t.Context(), c, handle)
			got <- result{lock, err}
		}()
		sleep(50 * ms)
		match(t, old.Renew(t.Context(), 0)) // A is gone, and is restored
		synctest.Wait()
		r := <-got
		if r.err != nil {
			t.Fatalf("resume: %v", r.err)
		}
		for range 20 {
			sleep(10 * time.Second)
			errOld, errNew := old.Renew(t.Context(), 0), r.lock.Renew(t.Context(), 0)
			if errOld != nil || errNew != nil {
				return
			}
		}
		t.Errorf("200 s after the resume both Locks of one hold renew: %v, %v", old.Err(), r.lock.Err())
	})
}

// A node that is being asked may hold; a release says ErrLost although it is not certain.
func TestReviewReleaseLostNotCertain(t *testing.T) {
	inHooked(t, 3, redlock.Config{}, func(t *testing.T, c *hookedCluster) {
		c.n[2].hook(nil, slow(2*time.Second, "acquire")) // executed at once, answered late
		lock := c.take(t, locker.Request{Owner: "me"})
		c.n[1].Forget(name)
		if at := c.at("me"); len(at) != 2 {
			t.Fatalf("at %v", at)
		}
		err := lock.Release(t.Context())
		if errors.Is(err, locker.ErrLost) {
			t.Errorf("two of three nodes held it to the end, and release says: %v", err)
		}
		sleep(5 * time.Second)
	})
}

// Nodes that were too slow say ErrLost: nobody else holds anything.
func TestReviewTooLateIsNoContention(t *testing.T) {
	inHooked(t, 3, redlock.Config{}, func(t *testing.T, c *hookedCluster) {
		for _, n := range c.n {
			n.hook(fails(fmt.Errorf("%w: the answer came past the lease; it was given back", locker.ErrLost), "acquire"), nil)
		}
		_, err := c.Acquire(t.Context(), locker.Request{Name: name, TTL: ttl})
		if errors.Is(err, locker.ErrNotAcquired) {
			t.Errorf("nobody holds the lock, and acquire says: %v", err)
		}
	})
}

// The same where the raising finds that the node lost its data, and another node is down.
func TestReviewLostWhileRaisingIsNoContention(t *testing.T) {
	inHooked(t, 3, redlock.Config{}, func(t *testing.T, c *hookedCluster) {
		match(t, mint(c.n[1].Locker, 5))
		c.n[0].hook(func(what string) error {
			if what == "raise fence" {
				c.n[0].Forget(name)
			}
			return nil
		}, nil)
		c.n[2].hook(fails(errDown, "acquire"), nil)
		_, err := c.Acquire(t.Context(), locker.Request{Name: name, TTL: ttl, Fenced: true})
		if errors.Is(err, locker.ErrNotAcquired) {
			t.Errorf("nobody holds the lock, one node is down, one lost its data, and acquire says: %v", err)
		}
	})
}

// A resume that is cut off has ended the hold, and says no more than that ctx ended.
func TestReviewResumeCutOff(t *testing.T) {
	inHooked(t, 3, redlock.Config{}, func(t *testing.T, c *hookedCluster) {
		old := c.take(t, locker.Request{Owner: "me"})
		handle := old.Handle()
		for _, n := range c.n {
			n.hook(nil, slow(100*ms, "resume"))
		}
		ctx, cancel := context.WithTimeout(t.Context(), 50*ms)
		defer cancel()
		_, err := locker.Resume(ctx, c, handle)
		sleep(time.Second)
		if at := c.at("me"); len(at) < 2 && !errors.Is(err, locker.ErrUnknownOutcome) {
			t.Errorf("the hold is at %v any more, and resume says: %v", at, err)
		}
	})
}

// A resume that fails gives back what it took over: a third gets the lock while the old one's holder, who is well, believes
// in its Deadline. (single undoes such a resume; leaving the parts to their TTL would keep the third out, too.)
func TestReviewFailedResumeFreesTheLock(t *testing.T) {
	inHooked(t, 3, redlock.Config{}, func(t *testing.T, c *hookedCluster) {
		old := c.take(t, locker.Request{Owner: "me"})
		for _, n := range c.n {
			n.hook(nil, slow(100*ms, "resume"))
		}
		ctx, cancel := context.WithTimeout(t.Context(), 50*ms)
		defer cancel()
		if _, err := locker.Resume(ctx, c, old.Handle()); err == nil {
			t.Fatal("the resume is meant to be cut off")
		}
		sleep(time.Second)
		c.excludes(t, old, "after a resume that was cut off")
	})
}

// Many contend through retry: none starves, the lock changes hands without long gaps. This one holds.
func TestReviewContendersProgress(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		defer sleep(time.Hour)
		c := overHooked(t, 5, redlock.Config{})
		for _, n := range c.n {
			n.hook(func(string) error { sleep(time.Duration(500+rand.IntN(4500)) * time.Microsecond); return nil }, nil)
		}
		start := time.Now()
		var wg sync.WaitGroup
		for range 4 { // processes, each with its own queue
			l := locker.Chain(c.Locker, locker.Must(retry.New(retry.Config{})))
			for range 3 {
				wg.Go(func() {
					for range 5 {
						lock, err := l.Acquire(t.Context(), locker.Request{Name: name, TTL: ttl})
						if err != nil {
							t.Errorf("acquire: %v", err)
							return
						}
						sleep(20 * ms)
						match(t, lock.Release(t.Context()))
					}
				})
			}
		}
		wg.Wait()
		t.Logf("60 holds of 20 ms took %v", time.Since(start))
		if took := time.Since(start); took > time.Minute {
			t.Errorf("60 holds of 20 ms took %v", took)
		}
	})
}

// Each renewal leaves a goroutine with a node that hangs.
func TestReviewRenewalsPileUp(t *testing.T) {
	inMemory(t, 3, redlock.Config{}, func(t *testing.T, c *cluster) {
		lock := c.acquire(locker.Request{})
		synctest.Wait()
		c.nodes[2].freeze()
		before := runtime.NumGoroutine()
		for range 500 {
			sleep(time.Second)
			match(t, lock.Renew(t.Context(), 0))
		}
		synctest.Wait()
		if more := runtime.NumGoroutine() - before; more > 50 {
			t.Errorf("500 renewals past a node that hangs left %d goroutines more", more)
		}
		match(t, lock.Release(t.Context()))
		sleep(time.Hour)
		if more := runtime.NumGoroutine() - before; more > 50 {
			t.Errorf("an hour after the release there are %d goroutines more: the ctx of a renewal never ends", more)
		}
		c.nodes[2].melt()
		synctest.Wait()
	})
}

// The flight of a part that is gone stands in the way of the part that came in its place.
func TestReviewFlightOfAnotherPart(t *testing.T) {
	inHooked(t, 3, redlock.Config{}, func(t *testing.T, c *hookedCluster) {
		lock := c.take(t, locker.Request{Owner: "me"})
		c.n[0].hook(slow(20*time.Second, "renew"), nil) // one renewal hangs
		match(t, lock.Renew(t.Context(), 0))
		synctest.Wait()
		c.n[0].hook(nil, fails(locker.ErrUnknownOutcome, "convert")) // so that the part is replaced
		match(t, lock.Downgrade(t.Context()))
		synctest.Wait()
		c.n[0].hook(nil, nil)
		match(t, lock.Renew(t.Context(), 0)) // restores it
		synctest.Wait()
		if at := c.at("me"); len(at) != 3 {
			t.Fatalf("at %v", at)
		}
		c.n[1].hook(fails(errDown, "renew"), nil) // from now on node 0, which is well, decides
		if err := lock.Renew(t.Context(), 0); err != nil {
			t.Errorf("nodes 0 and 2 are well and hold, and renew says: %v", err)
		}
		sleep(30 * time.Second)
	})
}

// raiser asks the lease of a lock to raise its fence, as a quorum around it does.
func raiser(lock *locker.Lock, fence int64) (err error) {
	locker.WrapLease(lock, func(inner locker.Lease) locker.Lease {
		_, err = inner.Do(bg, locker.Op{Kind: locker.OpRaiseFence, Fence: fence})
		return inner
	})
	return err
}

// Two of three nodes answer that the hold is gone: that is certain, and not said.
func TestReviewRaiseOfALostHold(t *testing.T) {
	inHooked(t, 3, redlock.Config{}, func(t *testing.T, c *hookedCluster) {
		lock := c.take(t, locker.Request{Owner: "me", Fenced: true})
		c.n[0].Forget(name)
		c.n[1].Forget(name)
		if err := raiser(lock, 100); !errors.Is(err, locker.ErrNotHeld) {
			t.Errorf("two of three nodes said that it is gone, and raise says: %v", err)
		}
	})
}

// Node 1 and node 2 hold for one owner; Inspect says that the name is free.
func TestReviewInspectAfterResume(t *testing.T) {
	inHooked(t, 3, redlock.Config{}, func(t *testing.T, c *hookedCluster) {
		c.n[2].hook(fails(errDown, "acquire"), nil)
		old := c.take(t, locker.Request{Owner: "me", Note: "host-1"})
		c.n[2].hook(nil, nil)
		lock, err := locker.Resume(t.Context(), c, old.Handle())
		match(t, err)
		match(t, lock.Renew(t.Context(), 0))
		synctest.Wait() // node 2 is restored, without the note
		c.n[0].Forget(name)
		if s, err := c.Inspect(t.Context(), name); err == nil && !s.Held {
			t.Errorf("%v hold for one owner, and Inspect says: %+v", c.at("me"), s)
		}
		match(t, lock.Renew(t.Context(), 0))
	})
}

// Two resumes of one handle share the nodes out; the hold was there, and both are told for certain that it was not.
func TestReviewTwoResumes(t *testing.T) {
	inHooked(t, 4, redlock.Config{}, func(t *testing.T, c *hookedCluster) {
		handle := c.take(t, locker.Request{Owner: "me"}).Handle()
		var mu sync.Mutex
		turns := make([]int, 4)
		for i, n := range c.n { // one resume comes first at nodes 0 and 1, the other at 2 and 3
			n.hook(func(what string) error {
				if what != "resume" {
					return nil
				}
				mu.Lock()
				turns[i]++
				second := turns[i] == 2
				mu.Unlock()
				if second != (i < 2) {
					sleep(20 * ms)
				}
				return nil
			}, nil)
		}
		errs := make(chan error, 2)
		for range 2 {
			go func() {
				_, err := locker.Resume(t.Context(), c, handle)
				errs <- err
			}()
			synctest.Wait()
		}
		first, second := <-errs, <-errs
		sleep(time.Second)
		if errors.Is(first, locker.ErrNotHeld) && errors.Is(second, locker.ErrNotHeld) && !errors.Is(first, locker.ErrUnknownOutcome) {
			t.Errorf("both resumes say that there was no such hold: %v; %v", first, second)
		}
	})
}

// odd is a Locker that returns what make makes of a lock.
type odd struct {
	*lockertest.Locker
	change func(*locker.Lock) *locker.Lock
}

func (o odd) Acquire(ctx context.Context, req locker.Request) (*locker.Lock, error) {
	lock, err := o.Locker.Acquire(ctx, req)
	if err != nil {
		return nil, err
	}
	return o.change(lock), nil
}

// A lock that is over, or of another mode, or the zero Lock, counts for the quorum.
func TestReviewOddLocks(t *testing.T) {
	t.Parallel()
	for what, change := range map[string]func(*locker.Lock) *locker.Lock{
		"lost":     func(l *locker.Lock) *locker.Lock { locker.MarkLost(l, errDown); return l },
		"released": func(l *locker.Lock) *locker.Lock { _ = l.Release(bg); return l },
		"zero":     func(*locker.Lock) *locker.Lock { return &locker.Lock{} },
		"shared":   func(l *locker.Lock) *locker.Lock { _ = l.Downgrade(bg); return l },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var lockers []locker.Locker
				for range 3 {
					lockers = append(lockers, odd{lockertest.New(), change})
				}
				lock, err := locker.Must(redlock.New(lockers, redlock.Config{})).Acquire(t.Context(), locker.Request{Name: name, TTL: ttl})
				if err == nil {
					t.Errorf("an exclusive lock, until %v, of three nodes' locks that are %s", lock.Deadline(), what)
				}
			})
		})
	}
}

// A part that is known to be gone when the quorum is won counts for it.
func TestReviewPartExpiredWhileGathering(t *testing.T) {
	inHooked(t, 3, redlock.Config{}, func(t *testing.T, c *hookedCluster) {
		c.n[0].hook(nil, nil)
		c.n[1].hook(slow(100*ms, "acquire"), nil)
		c.n[2].hook(fails(errDown, "acquire"), nil)
		time.AfterFunc(50*ms, func() { c.n[0].Expire(name) })
		lock := func() *locker.Lock {
			lock, _ := c.Acquire(t.Context(), locker.Request{Name: name, TTL: ttl, Owner: "me"})
			return lock
		}()
		if lock != nil {
			c.n[2].hook(nil, nil)
			c.excludes(t, lock, "after a part had ended before the quorum was won")
		}
	})
}

// A downgrade misses because of a node that is down; a refusal of the restoring, long ago, makes it "held by another".
func TestReviewStaleContention(t *testing.T) {
	inHooked(t, 3, redlock.Config{}, func(t *testing.T, c *hookedCluster) {
		c.n[2].Hold(locker.Request{Name: name, Owner: "stray", TTL: time.Second})
		lock := c.take(t, locker.Request{Owner: "me"})
		sleep(5 * time.Second) // the stray has long gone
		c.n[1].hook(fails(errDown, "convert"), nil)
		if err := lock.Downgrade(t.Context()); errors.Is(err, locker.ErrNotAcquired) {
			t.Errorf("nobody else holds anything, one node is down, and downgrade says: %v", err)
		}
	})
}

// The owner is that of most refusals, the channel that of the first: the release of that owner is not heard of there.
func TestReviewChannelOfAnother(t *testing.T) {
	inMemory(t, 5, redlock.Config{}, func(t *testing.T, c *cluster) {
		c.nodes[0].Hold(locker.Request{Name: name, Owner: "loser", TTL: ttl})
		for _, n := range c.nodes[1:] {
			n.Hold(locker.Request{Name: name, Owner: "holder", TTL: ttl})
		}
		_, err := c.Acquire(t.Context(), locker.Request{Name: name, TTL: ttl})
		held, ok := errors.AsType[*locker.ContentionError](err)
		if !ok {
			t.Fatalf("%v", err)
		}
		if held.Owner == "holder" && held.Channel.Name() == "wake:0" {
			t.Errorf("%q holds at nodes 1 to 4, and its release is listened for at %s, where it holds nothing", held.Owner, held.Channel.Name())
		}
	})
}

// The same node twice: every attempt is refused by itself, for ever, as contention.
func TestReviewNodeGivenTwice(t *testing.T) {
	t.Parallel()
	n := lockertest.New()
	l, err := redlock.New([]locker.Locker{n, n, n}, redlock.Config{})
	if err != nil {
		match(t, err, locker.ErrInvalid)
		return
	}
	_, err = l.Acquire(t.Context(), locker.Request{Name: name, Owner: "me"})
	t.Errorf("New takes a node three times; then an acquire of what is free says: %v", err)
}

// A release whose ctx ended long ago waits for as long as the nodes like.
func TestReviewReleaseIgnoresCtx(t *testing.T) {
	inHooked(t, 3, redlock.Config{}, func(t *testing.T, c *hookedCluster) {
		lock := c.take(t, locker.Request{Owner: "me"})
		for _, n := range c.n {
			n.hook(slow(time.Minute, "release"), nil)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		_ = lock.Release(ctx)
		if took := time.Since(start); took > 30*time.Second {
			t.Errorf("Release with 1 s of ctx, a TTL of 30 s and an AttemptTimeout of 1 s took %v", took)
		}
	})
}

// A nested hold of one owner may have a higher token than the hold around it, whose writes are refused from then on.
func TestReviewNestedFence(t *testing.T) {
	t.Parallel()
	var lockers []locker.Locker
	gate := make([]*gated, 3)
	for i := range 3 {
		m := miniredis.NewMiniRedis()
		m.SetTime(time.Now().Add(time.Duration(i) * ms)) // clocks differ by 1 ms, as clocks do
		client := redis.NewClient(&redis.Options{
			Addr: "127.0.0.1:6379", Dialer: func(context.Context, string, string) (net.Conn, error) { return m.Dial() },
		})
		drv := locker.Must(goredis.New(client))
		t.Cleanup(func() { _ = drv.Close(); _ = client.Close(); m.Close() })
		gate[i] = &gated{Locker: locker.Must(reentrant.New(drv, reentrant.Config{}))}
		lockers = append(lockers, gate[i])
	}
	l := locker.Must(redlock.New(lockers, redlock.Config{}))
	late := gate[2].hold() // the node whose clock is ahead is the last to be asked
	outer, err := l.Acquire(t.Context(), locker.Request{Name: name, Owner: "me", Fenced: true})
	match(t, err)
	late()
	late = gate[0].hold() // next time it is another
	inner, err := l.Acquire(t.Context(), locker.Request{Name: name, Owner: "me", Fenced: true})
	match(t, err)
	if inner.Fence() != outer.Fence() {
		t.Errorf("one tenure of one owner has the tokens %d and, nested, %d: after a nested write the outer ones are refused",
			outer.Fence(), inner.Fence())
	}
	late()
	match(t, inner.Release(bg))
	match(t, outer.Release(bg))
}

// gated is a Locker that is not asked before the gate opens.
type gated struct {
	locker.Locker
	mu           sync.Mutex
	gate, passed chan struct{}
}

// hold closes the gate for the next acquire; open lets it through, and waits for it.
func (g *gated) hold() (open func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	gate, passed := make(chan struct{}), make(chan struct{})
	g.gate, g.passed = gate, passed
	return func() { close(gate); <-passed }
}

func (g *gated) Acquire(ctx context.Context, req locker.Request) (*locker.Lock, error) {
	g.mu.Lock()
	gate, passed := g.gate, g.passed
	g.gate, g.passed = nil, nil
	g.mu.Unlock()
	if gate != nil {
		<-gate
		defer close(passed)
	}
	return g.Locker.Acquire(ctx, req)
}

// raises is a Lease that can do all.
type raises struct{}

func (raises) Do(_ context.Context, op locker.Op) (locker.Term, error) {
	return locker.Term{Fence: op.Fence, Deadline: time.Now().Add(ttl)}, nil
}

// What panics here ends the process: it is in goroutines of redlock's own.
func TestReviewPanics(t *testing.T) {
	t.Parallel()
	if what := os.Getenv("REVIEW_PANIC"); what != "" {
		var fence int64
		lease := locker.Lease(raises{})
		switch what {
		case "negative fence":
			fence = -1
		case "no lease":
			lease = nil
		}
		node := locker.Func(func(ctx context.Context, req locker.Request) (*locker.Lock, error) {
			if what == "node panics" {
				panic("a node's own")
			}
			return locker.NewLock(ctx, locker.Grant{
				Name: req.Name, Token: "t", TTL: req.TTL, Deadline: time.Now().Add(req.TTL), Fence: fence,
			}, lease), nil
		})
		l := locker.Must(redlock.New([]locker.Locker{node, node, node}, redlock.Config{}))
		defer func() { _ = recover() }() // a caller's
		lock, err := l.Acquire(context.Background(), locker.Request{Name: name, TTL: ttl, Fenced: fence != 0})
		if err == nil && what == "no lease" {
			_ = lock.Release(context.Background())
		}
		time.Sleep(50 * ms)
		return
	}
	for _, what := range []string{"negative fence", "no lease", "node panics"} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			cmd := exec.Command(os.Args[0], "-test.run=^TestReviewPanics$", "-test.count=1")
			cmd.Env = append(os.Environ(), "REVIEW_PANIC="+what)
			out, err := cmd.CombinedOutput()
			if strings.Contains(string(out), "panic: ") {
				line, _, _ := strings.Cut(string(out)[strings.Index(string(out), "panic: "):], "\n")
				t.Errorf("the process dies of %q (%v)", line, err)
			}
		})
	}
}

// Random histories: delays, errors, lost answers, cancelled callers. This one holds.
func TestReviewRandomHistories(t *testing.T) {
	t.Parallel()
	var total atomic.Int64
	for seed := range uint64(60) {
		for _, n := range []int{1, 2, 3, 4, 5} {
			synctest.Test(t, func(t *testing.T) { history(t, seed, n, &total) })
		}
	}
	t.Logf("%d locks", total.Load())
}

func history(t *testing.T, seed uint64, n int, total *atomic.Int64) {
	t.Helper()
	const lease = time.Second
	var mu sync.Mutex
	random := rand.New(rand.NewPCG(seed, uint64(n)))
	upTo := func(k int) int {
		mu.Lock()
		defer mu.Unlock()
		return random.IntN(k)
	}
	c := overHooked(t, n, redlock.Config{TTL: lease, AttemptTimeout: 150 * ms})
	var stop atomic.Bool
	for i := range c.n {
		disturb := func(what string) error {
			switch {
			case stop.Load():
			case upTo(4) == 0:
				sleep(time.Duration(upTo(120)) * ms)
			case upTo(40) == 0:
				sleep(time.Duration(upTo(3000)) * ms)
			}
			if !stop.Load() && upTo(25) == 0 {
				return fmt.Errorf("cut: %w", locker.ErrUnknownOutcome)
			}
			return nil
		}
		c.n[i].hook(disturb, disturb)
	}
	var holders []*locker.Lock
	last := int64(0)
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for range 25 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(1+upTo(400))*ms)
				lock, err := c.Acquire(ctx, locker.Request{Name: name, Owner: fmt.Sprint(w), Fenced: seed%2 == 0})
				cancel()
				if err != nil {
					sleep(time.Duration(upTo(300)) * ms)
					continue
				}
				mu.Lock()
				if lock.Err() == nil {
					for _, h := range holders {
						if h.Err() == nil {
							t.Errorf("seed %d, %d nodes: %s and %s hold at once", seed, n, h.Owner(), lock.Owner())
						}
					}
					if f := lock.Fence(); f != 0 && f <= last {
						t.Errorf("seed %d, %d nodes: fence %d after %d", seed, n, f, last)
					} else {
						last = f
					}
				}
				holders = append(holders, lock)
				mu.Unlock()
				for lock.Err() == nil && upTo(6) > 0 {
					ctx, cancel := context.WithTimeout(t.Context(), time.Duration(1+upTo(300))*ms)
					var wg sync.WaitGroup
					for range 1 + upTo(2) {
						wg.Go(func() { _ = lock.Renew(ctx, time.Duration(300+upTo(2000))*ms) })
					}
					wg.Wait()
					cancel()
					sleep(time.Duration(upTo(300)) * ms)
				}
				if upTo(5) > 0 {
					_ = lock.Release(t.Context())
				} else {
					for lock.Err() == nil {
						sleep(50 * ms)
					}
				}
			}
		})
	}
	wg.Wait()
	mu.Lock()
	won := len(holders)
	mu.Unlock()
	total.Add(int64(won))
	stop.Store(true)
	sleep(2 * time.Minute)
	for i, node := range c.n {
		if s, _ := node.Inspect(bg, name); s.Held {
			t.Errorf("seed %d: node %d of %d is still held by %q", seed, i, n, s.Owner)
		}
	}
}

// Every operation at once on one Lock, with disturbed nodes: no race, no hang, nothing left behind. This one holds.
func TestReviewAllAtOnce(t *testing.T) {
	t.Parallel()
	for seed := range uint64(100) {
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			random := rand.New(rand.NewPCG(seed, 7))
			upTo := func(k int) int {
				mu.Lock()
				defer mu.Unlock()
				return random.IntN(k)
			}
			c := overHooked(t, 3, redlock.Config{})
			var calm atomic.Bool
			calm.Store(true)
			for i := range c.n {
				c.n[i].hook(func(string) error {
					if !calm.Load() {
						sleep(time.Duration(upTo(1500)) * ms)
						switch upTo(12) {
						case 0:
							return errDown
						case 1:
							return fmt.Errorf("cut: %w", locker.ErrUnknownOutcome)
						case 2:
							c.n[i].Forget(name)
						}
					}
					return nil
				}, nil)
			}
			lock, err := c.Acquire(t.Context(), locker.Request{Name: name, TTL: 10 * time.Second, Mode: locker.Shared, Fenced: seed%2 == 0})
			if err == nil {
				calm.Store(false)
				var wg sync.WaitGroup
				for range 6 {
					wg.Go(func() {
						for range 12 {
							ctx, cancel := context.WithTimeout(t.Context(), time.Duration(upTo(2000))*ms)
							switch upTo(12) {
							case 0, 1, 2, 3:
								_ = lock.Renew(ctx, 0)
							case 4:
								_ = lock.Renew(ctx, time.Minute)
							case 5, 6:
								_ = lock.Upgrade(ctx)
							case 7, 8:
								_ = lock.Downgrade(ctx)
							case 9:
								_ = lock.Handle().Encode()
							case 10:
								_, _, _ = lock.Mode(), lock.Deadline(), fmt.Sprint(lock)
							case 11:
								if upTo(8) == 0 {
									_ = lock.Release(ctx)
								}
							}
							cancel()
							sleep(time.Duration(upTo(700)) * ms)
						}
					})
				}
				wg.Wait()
				calm.Store(true)
				_ = lock.Release(t.Context())
			}
			calm.Store(true)
			sleep(2 * time.Minute)
			for i, n := range c.n {
				if s, _ := n.Inspect(bg, name); s.Held {
					t.Errorf("seed %d: node %d is still held", seed, i)
				}
			}
		})
	}
}

// A wrapper that has no Unwrap, as one that changes renewals, takes the Handle away; with single it does not.
func TestReviewHandleBehindAWrapper(t *testing.T) {
	inHooked(t, 3, redlock.Config{}, func(t *testing.T, c *hookedCluster) {
		lock := c.take(t, locker.Request{})
		locker.WrapLease(lock, func(inner locker.Lease) locker.Lease { return struct{ locker.Lease }{inner} })
		if lock.Handle().IsZero() {
			t.Errorf("the Handle of a lock that is held is zero")
		}
	})
}
