package redlock_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/strategies/redlock"
)

// A resume takes the node locks one by one, and the old holder restores them behind it: the old
// Lock is lost all the same.
func TestOneHoldIsNeverTwoLocks(t *testing.T) {
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
		got := make(chan *locker.Lock, 1)
		go func() { got <- locker.Must(locker.Resume(t.Context(), c, handle)) }()
		sleep(50 * ms)
		succeeds(t, old.Renew(t.Context(), 0)) // A is gone, and is restored
		resumed := <-got
		for range 20 {
			sleep(10 * time.Second)
			errOld, errNew := old.Renew(t.Context(), 0), resumed.Renew(t.Context(), 0)
			if errOld != nil || errNew != nil {
				return
			}
		}
		t.Errorf("200 s after the resume both Locks of one hold renew: %v, %v", old.Err(), resumed.Err())
	})
}

// A resume that is cut off returns more than the error of ctx, unless the hold is as before, and is
// undone: the Lock that it took node locks from relies on its Deadline.
func TestResumeThatIsCutOff(t *testing.T) {
	inHooked(t, 3, redlock.Config{}, func(t *testing.T, c *hookedCluster) {
		old := c.take(t, locker.Request{Owner: "me"})
		hookAll(c.n, nil, slow(100*ms, "resume"))
		ctx, cancel := context.WithTimeout(t.Context(), 50*ms)
		defer cancel()
		_, err := locker.Resume(ctx, c, old.Handle())
		wantError(t, "the resume, which is cut off,", err)
		sleep(time.Second)
		if at := c.at("me"); len(at) < 2 && !errors.Is(err, locker.ErrUnknownOutcome) {
			t.Errorf("the hold is at %v any more, and resume says: %v", at, err)
		}
		c.excludes(t, old, "after a resume that was cut off")
	})
}

// A quorum that holds for one owner is seen by Inspect, also where a node was restored after a
// resume.
func TestResumedHoldIsInspected(t *testing.T) {
	inHooked(t, 3, redlock.Config{}, func(t *testing.T, c *hookedCluster) {
		c.n[2].hook(fails(errDown, "acquire"), nil)
		old := c.take(t, locker.Request{Owner: "me", Note: "host-1"})
		c.n[2].hook(nil, nil)
		lock := locker.Must(locker.Resume(t.Context(), c, old.Handle()))
		match(t, lock.Renew(t.Context(), 0))
		synctest.Wait() // node 2 is restored, with the note that the Handle carries
		c.n[0].Forget(name)
		if s, err := c.Inspect(t.Context(), name); err != nil || s.Owner != "me" || s.Note != "host-1" {
			t.Errorf("%v hold for one owner, and Inspect says: %+v, %v", c.at("me"), s, err)
		}
		match(t, lock.Renew(t.Context(), 0))
	})
}

// Two resumes of one handle share the nodes out: neither says for certain that there was no such
// hold.
func TestTwoResumesThatShareTheNodesOut(t *testing.T) {
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
			go func() { errs <- check.ErrOf(locker.Resume(t.Context(), c, handle)) }()
			synctest.Wait()
		}
		first, second := <-errs, <-errs
		sleep(time.Second)
		if errors.Is(first, locker.ErrNotHeld) && errors.Is(second, locker.ErrNotHeld) && !errors.Is(first, locker.ErrUnknownOutcome) {
			t.Errorf("both resumes say that there was no such hold: %v; %v", first, second)
		}
	})
}

// A wrapper without Unwrap, as one that changes renewals, does not take the Handle away.
func TestHandleBehindAWrapper(t *testing.T) {
	inHooked(t, 3, redlock.Config{}, func(t *testing.T, c *hookedCluster) {
		lock := c.take(t, locker.Request{})
		lock.Hold().Wrap(func(inner lease.Lease) lease.Lease { return struct{ lease.Lease }{inner} })
		check.Equal(t, "the Handle of a lock that is held is zero", lock.Handle().IsZero(), false)
	})
}
