package keylock_test

import (
	"errors"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/strategies/internal/faultdriver"
)

func sleep(d time.Duration) { time.Sleep(d) } //nolint:forbidigo // fake time

// An acquire that is answered after its Deadline is undone.
func TestAcquireAnsweredTooLate(t *testing.T) {
	eachStrategy(t, settings{attempt: 5 * time.Second}, func(t *testing.T, b *bench) {
		b.drv.Then(faultdriver.Fault{Delay: 995 * time.Millisecond})
		_, err := b.Acquire(t.Context(), locker.Request{Name: name, TTL: time.Second})
		wantIs(t, err, locker.ErrLost)
		if errors.Is(err, locker.ErrNotAcquired) || errors.Is(err, locker.ErrUnknownOutcome) {
			t.Errorf("error %v, want a loss alone", err)
		}
		synctest.Wait()
		sleep(2 * time.Millisecond)
		if b.m.Exists(name) {
			t.Error("the key is still there")
		}
	})
}

// A resume that is answered after its lease ended is undone: the Lock of the hold, which was
// renewed for longer, works again.
func TestResumeAnsweredTooLate(t *testing.T) {
	eachStrategy(t, settings{}, func(t *testing.T, b *bench) {
		lock := b.acquire(t, locker.Request{TTL: 300 * time.Millisecond})
		wantNone(t, lock.Renew(t.Context(), time.Minute))
		hang := faultdriver.Fault{Hang: true}
		b.drv.Then(faultdriver.Fault{Lose: true}, hang, hang, hang)
		_, err := locker.Resume(t.Context(), b, lock.Handle())
		wantIs(t, err, locker.ErrLost)
		sleep(2 * time.Second)
		wantNone(t, lock.Renew(t.Context(), 0))
		wantNone(t, lock.Release(t.Context()))
		b.wantFree(t)
	})
}

// A step of the server's clock by the drift less 1 ms ends no lease before its Deadline. The
// millisecond is for the rounding to whole ones.
func TestDeadlineBearsAStep(t *testing.T) {
	eachStrategy(t, settings{}, func(t *testing.T, b *bench) {
		sleep(999 * time.Microsecond)
		lock := b.acquire(t, locker.Request{TTL: time.Second})
		sleep(time.Until(lock.Deadline()) - time.Nanosecond)
		const drift = time.Second/100 + 2*time.Millisecond
		b.m.SetTime(time.Now().Add(drift - time.Millisecond))
		_, err := b.Acquire(t.Context(), locker.Request{Name: name, NoWait: true})
		wantIs(t, err, locker.ErrNotAcquired)
		wantNone(t, lock.Err())
	})
}

// The counter is never set to a value that cannot be incremented, and a lock that is not fenced has
// none.
func TestRaiseFenceRefusesWhatItCannotCount(t *testing.T) {
	eachStrategy(t, settings{}, func(t *testing.T, b *bench) {
		raise := func(lock *locker.Lock, to int64) error {
			_, err := leaseOf(lock).Do(t.Context(), lease.Op{Kind: lease.OpRaiseFence, Fence: to})
			return err
		}
		lock := b.acquire(t, locker.Request{Fenced: true})
		for _, fence := range []int64{math.MaxInt64, 1<<53 - 1, 0, -5} {
			wantIs(t, raise(lock, fence), locker.ErrInvalid)
		}
		wantNone(t, raise(lock, 1<<53-2))
		wantNone(t, lock.Release(t.Context()))
		wantIs(t, raise(b.acquire(t, locker.Request{}), 1), errors.ErrUnsupported)
	})
}

// A command that fails without a write has an unknown outcome if an earlier send of it may still be
// executed.
func TestFailureBehindAnOpenSend(t *testing.T) {
	eachStrategy(t, settings{}, func(t *testing.T, b *bench) {
		lock := b.acquire(t, locker.Request{Fenced: true, TTL: time.Hour})
		high := lock.Fence() + time.Hour.Microseconds()
		raise := func() error {
			_, err := leaseOf(lock).Do(t.Context(), lease.Op{Kind: lease.OpRaiseFence, Fence: high})
			return err
		}
		const counter = "{job}:fence"
		wantNone(t, b.m.Set(counter, "soon"))
		if err := raise(); !errors.Is(err, driver.ErrPermanent) || errors.Is(err, locker.ErrUnknownOutcome) {
			t.Errorf("error %v, want one that is sure and does not pass", err)
		}
		b.drv.Then(faultdriver.Fault{Late: time.Second})
		err := raise()
		wantIs(t, err, locker.ErrUnknownOutcome)
		wantIs(t, err, driver.ErrPermanent)
		b.m.Del(counter)
		b.drv.WaitLate()
		if got, err := b.m.Get(counter); err != nil || got == "" {
			t.Errorf("the late send left the counter %q, %v", got, err)
		}
		wantNone(t, lock.Release(t.Context()))
		if next := b.acquire(t, locker.Request{Fenced: true}); next.Fence() != high+1 {
			t.Errorf("the next holder has the token %d, it was raised to %d", next.Fence(), high)
		}
	})
}

// The lock of another strategy is reported as such and left alone, by what acquires and by what a
// holder does whose lock it replaced.
func TestLockOfAnotherStrategy(t *testing.T) {
	eachStrategy(t, settings{}, func(t *testing.T, b *bench) {
		for _, other := range strategies {
			mine := strategyOf(b.Locker)
			if mine == other.name {
				continue
			}
			lock := b.acquire(t, locker.Request{Fenced: true})
			b.m.FlushAll()
			_, err := locker.Must(other.new(b.drv, settings{})).Acquire(t.Context(), locker.Request{Name: name, TTL: time.Hour})
			wantNone(t, err)
			before := b.m.Dump()
			for _, fenced := range []bool{false, true} {
				_, err := b.Acquire(t.Context(), locker.Request{Name: name, Fenced: fenced, NoWait: true})
				if err == nil || errors.Is(err, locker.ErrNotAcquired) || errors.Is(err, locker.ErrUnknownOutcome) || driver.Transient(err) ||
					!strings.Contains(strings.ToLower(err.Error()), "type") {
					t.Errorf("acquire where %s holds: %v; want an error that names the type", other.name, err)
				}
			}
			_, err = locker.Resume(t.Context(), b, lock.Handle())
			if err == nil || errors.Is(err, locker.ErrUnknownOutcome) {
				t.Errorf("resume where %s holds: %v", other.name, err)
			}
			if _, err := locker.Inspect(t.Context(), b.Locker, name); err == nil && mine != "exclusive" {
				t.Errorf("inspect where %s holds: no error", other.name)
			}
			for _, op := range []lease.Op{
				{Kind: lease.OpRaiseFence, Fence: 1}, {Kind: lease.OpRenew, TTL: time.Minute},
				{Kind: lease.OpConvert, Mode: locker.Shared}, {Kind: lease.OpConvert, Mode: locker.Exclusive},
			} {
				if _, err := leaseOf(lock).Do(t.Context(), op); !errors.Is(err, errors.ErrUnsupported) {
					wantIs(t, err, locker.ErrLost)
				}
			}
			wantIs(t, lock.Release(t.Context()), locker.ErrLost)
			if after := b.m.Dump(); after != before {
				t.Errorf("%s had\n%s, and now there is\n%s", other.name, before, after)
			}
			b.m.FlushAll()
		}
	})
}
