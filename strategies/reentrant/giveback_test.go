package reentrant_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
)

// giveBack undoes a resume, within a second.
func giveBack(t *testing.T, lock *locker.Lock) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err := leaseOf(lock).Do(ctx, lease.Op{Kind: lease.OpUndo})
	return err
}

// A resume that is undone restores the hold that it was made from, whichever replies are lost, and
// no other hold is affected.
func TestGiveBack(t *testing.T) {
	t.Parallel()
	for what, faults := range map[string][]fault{
		"answered": nil, "not answered": {{Lose: true}, {Lose: true}}, "executed late": {{Late: 10 * time.Second}, {Hang: true}},
	} {
		t.Run(what, func(t *testing.T) {
			run(t, func(t *testing.T, b bench) {
				outer, old := b.me(t, locker.Request{TTL: time.Hour}), b.me(t, locker.Request{TTL: 2 * time.Hour, Fenced: true})
				resumed, err := locker.Resume(t.Context(), b, old.Handle())
				match(t, err)
				b.drv.Then(faults...)
				if err = giveBack(t, resumed); what != "executed late" {
					match(t, err)
				}
				b.drv.WaitLate()
				sleep(2 * time.Second)
				b.holds(t, 2)
				match(t, resumed.Renew(t.Context(), 0), locker.ErrLost)
				match(t, resumed.Release(t.Context()), locker.ErrLost)
				match(t, old.Renew(t.Context(), 0))
				again, err := locker.Resume(t.Context(), b, old.Handle())
				match(t, err)
				if again.Fence() <= resumed.Fence() {
					t.Errorf("fence %d after %d", again.Fence(), resumed.Fence())
				}
				b.holds(t, 2)
				release(t, again, outer)
				b.free(t)
			})
		})
	}
}

// An undo after the end of the lease does not bring the hold back, though the tenure goes on.
func TestGiveBackAfterTheEnd(t *testing.T) {
	run(t, func(t *testing.T, b bench) {
		outer, old := b.me(t, locker.Request{TTL: time.Hour}), b.me(t, locker.Request{TTL: time.Second})
		resumed, err := locker.Resume(t.Context(), b, old.Handle())
		match(t, err)
		sleep(time.Second)
		match(t, giveBack(t, resumed), locker.ErrLost)
		_, err = locker.Resume(t.Context(), b, old.Handle())
		match(t, err, locker.ErrNotHeld)
		b.holds(t, 1)
		release(t, outer)
		b.free(t)
	})
}

// A hold that was resumed again meanwhile is left alone, also if the first resume is executed once
// more.
func TestGiveBackOfWhatAnotherTook(t *testing.T) {
	run(t, func(t *testing.T, b bench) {
		old := b.me(t, locker.Request{TTL: time.Hour})
		b.drv.Then(fault{Late: 5 * time.Second}) // the second send takes it over
		resumed, err := locker.Resume(t.Context(), b, old.Handle())
		match(t, err)
		third, err := locker.Resume(t.Context(), b, resumed.Handle())
		match(t, err)
		match(t, giveBack(t, resumed), locker.ErrLost)
		sleep(time.Minute)
		match(t, third.Renew(t.Context(), 0))
		b.holds(t, 1)
		release(t, third)
		b.free(t)
	})
}

// A resume that is executed after its undo is undone again.
func TestResumeExecutedAfterGiveBack(t *testing.T) {
	run(t, func(t *testing.T, b bench) {
		old := b.me(t, locker.Request{TTL: time.Hour})
		b.drv.Then(fault{Late: 10 * time.Second})
		resumed, err := locker.Resume(t.Context(), b, old.Handle())
		match(t, err)
		match(t, giveBack(t, resumed))
		sleep(12 * time.Second)
		match(t, old.Renew(t.Context(), 0))
		release(t, old)
		b.free(t)
	})
}

// A resume that finds no hold, while an earlier send of it may still be executed, is undone if it
// is: the hold may be back by then.
func TestResumeExecutedAfterNotHeld(t *testing.T) {
	run(t, func(t *testing.T, b bench) {
		old := b.me(t, locker.Request{TTL: time.Hour})
		other, err := locker.Resume(t.Context(), b, old.Handle())
		match(t, err)
		b.drv.Then(fault{Late: 10 * time.Second})
		_, err = locker.Resume(t.Context(), b, old.Handle())
		match(t, err, locker.ErrNotHeld)
		match(t, giveBack(t, other))
		b.drv.WaitLate()
		synctest.Wait()
		sleep(2 * time.Second)
		match(t, old.Renew(t.Context(), 0))
		release(t, old)
		b.free(t)
	})
}
