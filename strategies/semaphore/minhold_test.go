package semaphore_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/strategies/internal/faultdriver"
	"github.com/holdfast-go/holdfast/strategies/semaphore"
)

// The permits of each hold stay taken until its own MinHold has passed, and are free then.
func TestMinHold(t *testing.T) {
	run(t, 5, func(t *testing.T, b bench) {
		one := take(t, b, locker.Request{MinHold: 10 * time.Second, Owner: "me", Note: "at work"})
		two := take(t, b, locker.Request{MinHold: 20 * time.Second, Permits: 2, TTL: time.Minute})
		sleep(time.Second)
		release(t, one)
		b.state(t, 1, 2)
		release(t, two)
		s := b.state(t, 0, 2)
		if s.Left != 19*time.Second || b.m.TTL(name) != s.Left {
			t.Errorf("state %+v, and the key ends in %v: want 19s", s, b.m.TTL(name))
		}
		if held := refused(t, b, 3); !held.Released || held.Owner != "me" || held.Note != "at work" || held.Left != 9*time.Second {
			t.Errorf("refused by %+v, want the hold that ends first", held)
		}
		beside := take(t, b, locker.Request{Permits: 2, TTL: time.Minute})
		b.state(t, 1, 0)
		if held := refused(t, b, 1); !held.Released {
			t.Errorf("refused by %+v, want a hold that was released", held)
		}
		sleep(9 * time.Second)
		b.state(t, 1, 1)
		release(t, beside)
		b.state(t, 0, 3)
		refused(t, b, 4)
		sleep(9*time.Second + 999*time.Millisecond)
		refused(t, b, 4)
		sleep(time.Millisecond)
		release(t, take(t, b, locker.Request{Permits: 5}))
		b.gone(t)
	})
}

// A release after MinHold frees the permits at once, and one after the end of the lease is a loss.
func TestReleaseAfterMinHold(t *testing.T) {
	run(t, 3, func(t *testing.T, b bench) {
		lock := take(t, b, locker.Request{MinHold: 10 * time.Second, Permits: 2})
		sleep(10 * time.Second)
		release(t, lock)
		b.gone(t)
		lost := take(t, b, locker.Request{MinHold: 10 * time.Second, TTL: 10 * time.Second})
		keeper := take(t, b, locker.Request{TTL: time.Minute})
		sleep(10 * time.Second)
		match(t, lost.Release(t.Context()), locker.ErrLost)
		b.state(t, 1, 2)
		release(t, keeper)
		b.gone(t)
	})
}

// A release that is resent, or repeated in the background, keeps the permits once, and until the
// same time.
func TestMinHoldOfResends(t *testing.T) {
	t.Parallel()
	hang := faultdriver.Fault{Hang: true}
	for what, plan := range map[string][]faultdriver.Fault{
		"answered":                   nil,
		"answer lost":                {{Lose: true}},
		"not executed":               {hang},
		"not executed twice":         {hang, hang},
		"executed behind its resend": {{Late: 2 * time.Second}},
	} {
		t.Run(what, func(t *testing.T) {
			run(t, 5, func(t *testing.T, b bench) {
				keeper := take(t, b, locker.Request{TTL: time.Hour})
				lock := take(t, b, locker.Request{TTL: time.Minute, MinHold: 20 * time.Second, Permits: 2})
				end := time.Now().Add(20 * time.Second)
				b.drv.Then(plan...)
				if err := lock.Release(t.Context()); err != nil && !errors.Is(err, locker.ErrUnknownOutcome) {
					t.Errorf("Release: %v", err)
				}
				sleep(10 * time.Second)
				b.state(t, 1, 2)
				sleep(time.Until(end) - time.Millisecond)
				b.state(t, 1, 2)
				sleep(3 * time.Millisecond)
				b.state(t, 1, 4)
				release(t, keeper)
				b.gone(t)
			})
		})
	}
}

// The first waiter gets its permits when MinHold has passed, though nobody releases then.
func TestWaiterAtEndOfMinHold(t *testing.T) {
	run(t, 3, func(t *testing.T, b bench) {
		lock := take(t, b, locker.Request{TTL: time.Hour, MinHold: 20 * time.Second, Permits: 2})
		end := time.Now().Add(20 * time.Second)
		large := wait(t.Context(), process(b), locker.Request{Permits: 3})
		synctest.Wait()
		sleep(time.Second)
		release(t, lock)
		sleep(time.Until(end) - time.Millisecond)
		if got(t, large) != nil {
			t.Error("the waiter has its permits before the end of MinHold")
		}
		sleep(5 * time.Millisecond)
		if next := got(t, large); next == nil {
			t.Error("the waiter has no permits at the end of MinHold")
		} else {
			release(t, next)
		}
	})
}

// A hold that was released cannot be renewed, released or resumed, and keeps its permits when the
// limit changes.
func TestKeptHold(t *testing.T) {
	run(t, 3, func(t *testing.T, b bench) {
		lock := take(t, b, locker.Request{MinHold: 20 * time.Second, Permits: 2})
		handle := lock.Handle()
		release(t, lock)
		_, err := locker.Resume(t.Context(), b, handle)
		match(t, err, locker.ErrNotHeld)
		match(t, b.ReleaseHandle(t.Context(), handle), locker.ErrNotHeld)
		_, err = b.with(semaphore.Config{Permits: 4}).Acquire(t.Context(), locker.Request{Name: name})
		if _, ok := errors.AsType[*semaphore.LimitError](err); !ok {
			t.Errorf("another limit: %v", err)
		}
		four := b.with(semaphore.Config{Permits: 4, Resize: true})
		refused(t, four, 3)
		release(t, take(t, four, locker.Request{Permits: 2}))
		sleep(20 * time.Second)
		b.gone(t)
	})
}
