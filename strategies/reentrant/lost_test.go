package reentrant_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/locker"
)

// Each hold counts once, whichever reply is lost.
func TestLostReplies(t *testing.T) {
	t.Parallel()
	for what, f := range map[string]fault{"executed": {Lose: true}, "not executed": {Hang: true}} {
		for _, fenced := range []bool{false, true} {
			test := what
			if fenced {
				test += ", fenced"
			}
			t.Run(test, func(t *testing.T) {
				run(t, func(t *testing.T, b bench) {
					req := locker.Request{Fenced: fenced}
					start := time.Now()
					b.drv.Then(f)
					outer := b.me(t, req)
					late := time.Second + 5*time.Millisecond // the send that won
					if f.Lose {
						late = 0
					}
					if got := outer.Deadline().Sub(start) - 29698*time.Millisecond; got != late {
						t.Errorf("the Deadline counts from %v after the first send, want %v", got, late)
					}
					b.holds(t, 1)

					b.drv.Then(f)
					inner := b.me(t, req)
					b.holds(t, 2)
					if inner.Fence() != outer.Fence() || (inner.Fence() > 0) != fenced {
						t.Errorf("fences %d and %d", outer.Fence(), inner.Fence())
					}

					b.drv.Then(f)
					match(t, inner.Renew(t.Context(), time.Minute))
					b.holds(t, 2)

					b.drv.Then(f)
					resumed, err := locker.Resume(t.Context(), b, inner.Handle())
					match(t, err)
					b.holds(t, 2)
					if resumed.Owner() != "me" || (resumed.Fence() > outer.Fence()) != fenced {
						t.Errorf("resumed %v from %v", resumed, inner)
					}
					match(t, inner.Renew(t.Context(), 0), locker.ErrLost)

					b.drv.Then(f)
					release(t, resumed)
					b.holds(t, 1)
					b.refused(t)
					match(t, outer.Renew(t.Context(), 0))
					b.drv.Then(f)
					release(t, outer)
					b.drv.WaitLate()
					synctest.Wait()
					b.free(t)
				})
			})
		}
	}
}

// An abandoned re-entry is cleaned up, and no other hold.
func TestReentryGivenUp(t *testing.T) {
	t.Parallel()
	for what, f := range map[string]fault{"executed": {Lose: true}, "executed late": {Late: 10 * time.Second}} {
		t.Run(what, func(t *testing.T) {
			run(t, func(t *testing.T, b bench) {
				outer := b.me(t, locker.Request{TTL: time.Hour})
				ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
				defer cancel()
				b.drv.Then(f, fault{Hang: true})
				_, err := b.Acquire(ctx, locker.Request{Name: name, Owner: "me", TTL: time.Hour})
				match(t, err, locker.ErrUnknownOutcome, context.DeadlineExceeded)
				b.drv.WaitLate()
				sleep(2 * time.Second)
				b.holds(t, 1)
				match(t, outer.Renew(t.Context(), 0))
				release(t, outer)
				sleep(time.Minute)
				b.free(t)
			})
		})
	}
}

// An abandoned resume is undone: the Lock and the Handle of the hold work again.
func TestResumeGivenUp(t *testing.T) {
	t.Parallel()
	for what, f := range map[string]fault{"executed": {Lose: true}, "executed late": {Late: 10 * time.Second}} {
		t.Run(what, func(t *testing.T) {
			run(t, func(t *testing.T, b bench) {
				outer, inner := b.me(t, locker.Request{TTL: time.Hour}), b.me(t, locker.Request{TTL: time.Hour})
				ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
				defer cancel()
				b.drv.Then(f, fault{Hang: true})
				_, err := locker.Resume(ctx, b, inner.Handle())
				match(t, err, locker.ErrUnknownOutcome)
				b.drv.WaitLate()
				sleep(2 * time.Second)
				b.holds(t, 2)
				match(t, inner.Renew(t.Context(), 0))
				release(t, outer, inner)
				b.free(t)
			})
		})
	}
}

// A resume that is answered after its lease ended is undone: the Lock of the hold, which was
// renewed for longer, works again.
func TestResumeAnsweredTooLate(t *testing.T) {
	run(t, func(t *testing.T, b bench) {
		lock := b.me(t, locker.Request{TTL: 300 * time.Millisecond})
		match(t, lock.Renew(t.Context(), time.Minute))
		b.drv.Then(fault{Lose: true}, fault{Hang: true})
		_, err := locker.Resume(t.Context(), b, lock.Handle())
		match(t, err, locker.ErrLost)
		sleep(2 * time.Second)
		b.refused(t)
		match(t, lock.Renew(t.Context(), 0))
		release(t, lock)
		b.free(t)
	})
}
