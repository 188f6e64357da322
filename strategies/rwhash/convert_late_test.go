package rwhash_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
)

// A conversion is executed once, whichever reply is lost.
func TestLostConversion(t *testing.T) {
	t.Parallel()
	for what, f := range map[string]fault{"executed": {Lose: true}, "not executed": {Hang: true}} {
		t.Run(what, func(t *testing.T) {
			run(t, func(t *testing.T, b bench) {
				lock := b.write(t, locker.Request{Fenced: true})
				fence := lock.Fence()
				for range 3 {
					b.drv.Then(f)
					match(t, lock.Downgrade(t.Context()))
					b.holds(t, 1, locker.Shared)
					if lock.Mode() != locker.Shared || lock.Fence() != fence {
						t.Errorf("%v, fence %d after %d", lock, lock.Fence(), fence)
					}
					other := b.read(t, locker.Request{})
					b.drv.Then(f)
					match(t, lock.Upgrade(t.Context()), locker.ErrNotAcquired)
					release(t, other)
					b.drv.Then(f)
					match(t, lock.Upgrade(t.Context()))
					b.holds(t, 1, locker.Exclusive)
					if lock.Mode() != locker.Exclusive || lock.Fence() <= fence {
						t.Errorf("%v, fence %d after %d", lock, lock.Fence(), fence)
					}
					fence = lock.Fence()
				}
				release(t, lock)
				b.free(t)
			})
		})
	}
}

// An abandoned conversion that is executed late changes nothing if another conversion followed it.
func TestLateConversion(t *testing.T) {
	run(t, func(t *testing.T, b bench) {
		lock := b.read(t, locker.Request{TTL: time.Hour})
		unknown := func(convert func(context.Context) error) {
			t.Helper()
			ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
			defer cancel()
			b.drv.Then(fault{Late: 10 * time.Second}, fault{Hang: true})
			match(t, convert(ctx), locker.ErrUnknownOutcome, context.DeadlineExceeded)
			if lock.Mode() != locker.Shared || lock.Err() != nil {
				t.Errorf("%v after an unknown outcome, want that nobody relies on more than reading", lock)
			}
		}
		unknown(lock.Upgrade)
		match(t, lock.Downgrade(t.Context()))
		b.drv.WaitLate()
		b.holds(t, 1, locker.Shared)

		match(t, lock.Upgrade(t.Context()))
		unknown(lock.Downgrade)
		match(t, lock.Upgrade(t.Context()))
		b.drv.WaitLate()
		b.holds(t, 1, locker.Exclusive)

		// Without another conversion behind it, it is executed late, and the Lock can be used on.
		unknown(lock.Downgrade)
		b.drv.WaitLate()
		b.holds(t, 1, locker.Shared)
		match(t, lock.Renew(t.Context(), 0))
		release(t, lock)
		b.free(t)
	})
}

// A resume that was undone does not change the numbers of conversions: a late one is still refused.
func TestLateConversionAfterAnUndoneResume(t *testing.T) {
	run(t, func(t *testing.T, b bench) {
		lock := b.read(t, locker.Request{TTL: time.Hour})
		for _, step := range []struct {
			plan []fault
			do   func(context.Context) error
		}{
			{[]fault{{Late: 10 * time.Second}, {Hang: true}}, lock.Upgrade},
			{nil, lock.Downgrade},
			{[]fault{{Lose: true}, {Hang: true}}, func(ctx context.Context) error {
				_, err := locker.Resume(ctx, b, lock.Handle())
				return err
			}},
		} {
			ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
			b.drv.Then(step.plan...)
			err := step.do(ctx)
			cancel()
			if step.plan != nil {
				match(t, err, locker.ErrUnknownOutcome)
			} else {
				match(t, err)
			}
		}
		b.drv.WaitLate()
		b.holds(t, 1, locker.Shared)
		release(t, lock)
		b.free(t)
	})
}

// A refused upgrade stays refused: a send of it that is executed later, when the other readers have
// left, changes nothing.
func TestLateSendOfARefusedUpgrade(t *testing.T) {
	run(t, func(t *testing.T, b bench) {
		lock, other := b.read(t, locker.Request{TTL: time.Hour}), b.read(t, locker.Request{})
		b.drv.Then(fault{Late: 10 * time.Second})
		match(t, lock.Upgrade(t.Context()), locker.ErrNotAcquired)
		release(t, other)
		b.drv.WaitLate()
		b.holds(t, 1, locker.Shared)
		release(t, lock)
		b.free(t)
	})
}

// Two concurrent conversions of one Lock are executed one after the other.
func TestConversionsAtOnce(t *testing.T) {
	run(t, func(t *testing.T, b bench) {
		lock := b.read(t, locker.Request{TTL: time.Hour})
		b.drv.Then(fault{Hang: true})
		first := make(chan error)
		go func() { first <- lock.Upgrade(t.Context()) }()
		sleep(time.Millisecond)
		match(t, lock.Downgrade(t.Context()))
		match(t, <-first)
		if b.holds(t, 1, locker.Shared); lock.Mode() != locker.Shared {
			t.Errorf("%v", lock)
		}
		release(t, lock)
		b.free(t)
	})
}

// A conversion that is executed behind a later one changes nothing, and returns an error.
func TestOvertakenConversion(t *testing.T) {
	run(t, func(t *testing.T, b bench) {
		lock := b.read(t, locker.Request{TTL: time.Hour})
		b.drv.Then(fault{Hang: true})
		first := make(chan error)
		go func() { first <- convert(t, lock, locker.Exclusive) }()
		sleep(time.Millisecond)
		match(t, convert(t, lock, locker.Shared))
		err := <-first
		if !errors.Is(err, driver.ErrPermanent) || errors.Is(err, locker.ErrNotHeld) || errors.Is(err, locker.ErrNotAcquired) {
			t.Errorf("the first one: %v", err)
		}
		b.holds(t, 1, locker.Shared)
		release(t, lock)
		b.free(t)
	})
}

// An upgrade with an unknown outcome was executed. The next upgrade finds nothing to do, and the
// writer still gets a new token, also if the counter is gone.
func TestUpgradeAfterOneOfUnknownOutcomeIsFenced(t *testing.T) {
	t.Parallel()
	for what, lost := range map[string]bool{"counter there": false, "counter gone": true} {
		t.Run(what, func(t *testing.T) {
			run(t, func(t *testing.T, b bench) {
				earlier := b.write(t, locker.Request{Fenced: true})
				token := earlier.Fence()
				release(t, earlier)
				lock := b.read(t, locker.Request{Fenced: true, TTL: time.Hour})
				if lock.Fence() != token {
					t.Fatalf("the reader has token %d, the writer before it %d", lock.Fence(), token)
				}
				ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
				defer cancel()
				b.drv.Then(fault{Lose: true}, fault{Hang: true})
				match(t, lock.Upgrade(ctx), locker.ErrUnknownOutcome)
				if lost {
					b.m.Del(counter)
				}
				match(t, lock.Upgrade(t.Context()))
				if lock.Mode() != locker.Exclusive || lock.Fence() <= token {
					t.Errorf("%v with token %d, an earlier writer had %d", lock.Mode(), lock.Fence(), token)
				}
				release(t, lock)
				next := b.write(t, locker.Request{Fenced: true})
				if next.Fence() <= lock.Fence() {
					t.Errorf("the next writer has token %d, the one before it %d", next.Fence(), lock.Fence())
				}
				release(t, next)
			})
		})
	}
}

// An upgrade that found a bad counter wrote nothing. If an earlier send of it may still be
// executed, the outcome is unknown.
func TestLateSendOfAFailedUpgrade(t *testing.T) {
	run(t, func(t *testing.T, b bench) {
		lock := b.read(t, locker.Request{Fenced: true, TTL: time.Hour})
		match(t, b.m.Set(counter, "rubbish"))
		if err := lock.Upgrade(t.Context()); err == nil || errors.Is(err, locker.ErrUnknownOutcome) {
			t.Errorf("upgrade: %v, want an error of the counter", err)
		}
		b.drv.Then(fault{Late: 10 * time.Second})
		match(t, lock.Upgrade(t.Context()), locker.ErrUnknownOutcome, driver.ErrPermanent)
		b.m.Del(counter)
		b.drv.WaitLate()
		b.holds(t, 1, locker.Exclusive)
		if lock.Mode() != locker.Shared {
			t.Errorf("the Lock says %v", lock.Mode())
		}
		match(t, lock.Upgrade(t.Context()))
		if lock.Mode() != locker.Exclusive || lock.Fence() == 0 {
			t.Errorf("the Lock says %v, token %d", lock.Mode(), lock.Fence())
		}
		release(t, lock)
	})
}
