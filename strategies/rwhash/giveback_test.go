package rwhash_test

import (
	"context"
	"testing"
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

// A resume that is undone restores the hold that it was made from, with the number of its
// conversions, whichever replies are lost.
func TestGiveBack(t *testing.T) {
	t.Parallel()
	for what, faults := range map[string][]fault{
		"answered": nil, "not answered": {{Lose: true}, {Lose: true}}, "executed late": {{Late: 10 * time.Second}, {Hang: true}},
	} {
		for _, mode := range modes {
			t.Run(what+", "+mode.String(), func(t *testing.T) {
				run(t, func(t *testing.T, b bench) {
					old := b.have(t, locker.Request{Name: name, Mode: mode, TTL: time.Hour, Fenced: true})
					match(t, old.Downgrade(t.Context()))
					if mode == locker.Exclusive {
						match(t, old.Upgrade(t.Context()))
					}
					resumed, err := locker.Resume(t.Context(), b, old.Handle())
					match(t, err)
					b.drv.Then(faults...)
					if err = giveBack(t, resumed); what != "executed late" {
						match(t, err)
					}
					b.drv.WaitLate()
					sleep(2 * time.Second)
					b.holds(t, 1, mode)
					match(t, resumed.Renew(t.Context(), 0), locker.ErrLost)
					match(t, old.Renew(t.Context(), 0))
					match(t, old.Downgrade(t.Context()))
					match(t, old.Upgrade(t.Context()))
					again, err := locker.Resume(t.Context(), b, old.Handle())
					match(t, err)
					b.holds(t, 1, locker.Exclusive)
					release(t, again)
					b.free(t)
				})
			})
		}
	}
}

// An undo after the end of the lease does not bring the hold back, though other readers go on.
// Neither does one of a hold that was resumed once more.
func TestGiveBackOfWhatIsGone(t *testing.T) {
	run(t, func(t *testing.T, b bench) {
		beside := b.read(t, locker.Request{TTL: time.Hour})
		old := b.read(t, locker.Request{TTL: time.Second})
		resumed, err := locker.Resume(t.Context(), b, old.Handle())
		match(t, err)
		third, err := locker.Resume(t.Context(), b, resumed.Handle())
		match(t, err)
		match(t, giveBack(t, resumed), locker.ErrLost)
		match(t, third.Renew(t.Context(), 0))
		sleep(time.Second)
		match(t, giveBack(t, third), locker.ErrLost)
		_, err = locker.Resume(t.Context(), b, resumed.Handle())
		match(t, err, locker.ErrNotHeld)
		b.holds(t, 1, locker.Shared)
		release(t, beside)
		b.free(t)
	})
}
