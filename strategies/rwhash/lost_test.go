package rwhash_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/locker"
)

var modes = []locker.Mode{locker.Shared, locker.Exclusive}

// Each hold counts once, whichever reply is lost.
func TestLostReplies(t *testing.T) {
	t.Parallel()
	for what, f := range map[string]fault{"executed": {Lose: true}, "not executed": {Hang: true}} {
		for _, mode := range modes {
			for _, isFenced := range []bool{false, true} {
				t.Run(what+", "+mode.String(), func(t *testing.T) {
					run(t, func(t *testing.T, b bench) {
						var beside []*locker.Lock
						if mode == locker.Shared {
							beside = append(beside, b.read(t, locker.Request{TTL: time.Hour}))
						}
						n := len(beside) + 1
						start := time.Now()
						b.drv.Then(f)
						lock := b.have(t, locker.Request{Name: name, Mode: mode, Owner: "me", Note: "at work", Fenced: isFenced})
						late := time.Second + 5*time.Millisecond // the send that won
						if f.Lose {
							late = 0
						}
						if got := lock.Deadline().Sub(start) - 29698*time.Millisecond; got != late {
							t.Errorf("the Deadline counts from %v after the first send, want %v", got, late)
						}
						b.holds(t, n, mode)
						if (lock.Fence() > 0) != isFenced {
							t.Errorf("fence %d", lock.Fence())
						}
						b.drv.Then(f)
						match(t, lock.Renew(t.Context(), time.Minute))
						b.holds(t, n, mode)
						b.drv.Then(f)
						resumed, err := locker.Resume(t.Context(), b, lock.Handle())
						match(t, err)
						b.holds(t, n, mode)
						if resumed.Owner() != "me" || (resumed.Fence() > lock.Fence()) != (isFenced && mode == locker.Exclusive) {
							t.Errorf("resumed %v from %v", resumed, lock)
						}
						match(t, lock.Renew(t.Context(), 0), locker.ErrLost)
						b.drv.Then(f)
						release(t, resumed)
						b.holds(t, n-1, map[bool]locker.Mode{true: locker.Shared}[n > 1])
						release(t, beside...)
						b.drv.WaitLate()
						synctest.Wait()
						b.free(t)
					})
				})
			}
		}
	}
}

// An abandoned acquire is cleaned up, and no other hold.
func TestAcquireGivenUp(t *testing.T) {
	t.Parallel()
	for what, f := range map[string]fault{"executed": {Lose: true}, "executed late": {Late: 10 * time.Second}} {
		for _, mode := range modes {
			t.Run(what+", "+mode.String(), func(t *testing.T) {
				run(t, func(t *testing.T, b bench) {
					told := b.told(t)
					var beside []*locker.Lock
					if mode == locker.Shared {
						beside = append(beside, b.read(t, locker.Request{TTL: time.Hour}))
					}
					ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
					defer cancel()
					b.drv.Then(f, fault{Hang: true})
					_, err := b.Acquire(ctx, locker.Request{Name: name, Mode: mode, TTL: time.Hour})
					match(t, err, locker.ErrUnknownOutcome, context.DeadlineExceeded)
					b.drv.WaitLate()
					sleep(2 * time.Second)
					if want := 1 - len(beside); told() != want {
						t.Errorf("the clean-up told %d times, want %d", told(), want)
					}
					b.holds(t, len(beside), map[bool]locker.Mode{true: locker.Shared}[len(beside) > 0])
					release(t, beside...)
					sleep(time.Minute)
					b.free(t)
				})
			})
		}
	}
}

// An abandoned resume is undone: the Lock and the Handle of the hold work again.
func TestResumeGivenUp(t *testing.T) {
	t.Parallel()
	for what, f := range map[string]fault{"executed": {Lose: true}, "executed late": {Late: 10 * time.Second}} {
		for _, mode := range modes {
			t.Run(what+", "+mode.String(), func(t *testing.T) {
				run(t, func(t *testing.T, b bench) {
					lock := b.have(t, locker.Request{Name: name, Mode: mode, TTL: time.Hour})
					match(t, lock.Downgrade(t.Context()))
					if mode == locker.Exclusive {
						match(t, lock.Upgrade(t.Context()))
					}
					ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
					defer cancel()
					b.drv.Then(f, fault{Hang: true})
					_, err := locker.Resume(ctx, b, lock.Handle())
					match(t, err, locker.ErrUnknownOutcome)
					b.drv.WaitLate()
					sleep(2 * time.Second)
					b.holds(t, 1, mode)
					match(t, lock.Renew(t.Context(), 0))
					match(t, lock.Downgrade(t.Context()))
					match(t, lock.Upgrade(t.Context()))
					b.holds(t, 1, locker.Exclusive)
					release(t, lock)
					b.free(t)
				})
			})
		}
	}
}

// A resume that is answered after its lease ended is undone: the Lock of the hold, which was
// renewed for longer, works again.
func TestResumeAnsweredTooLate(t *testing.T) {
	t.Parallel()
	for _, mode := range modes {
		t.Run(mode.String(), func(t *testing.T) {
			run(t, func(t *testing.T, b bench) {
				lock := b.have(t, locker.Request{Name: name, Mode: mode, TTL: 300 * time.Millisecond})
				match(t, lock.Renew(t.Context(), time.Minute))
				b.drv.Then(fault{Lose: true}, fault{Hang: true})
				_, err := locker.Resume(t.Context(), b, lock.Handle())
				match(t, err, locker.ErrLost)
				sleep(2 * time.Second)
				b.holds(t, 1, mode)
				match(t, lock.Renew(t.Context(), 0))
				release(t, lock)
				b.free(t)
			})
		})
	}
}
