package keylock_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/locker/locktrace"
	"github.com/holdfast-go/holdfast/strategies/internal/faultdriver"
)

// Contract 4: an acquire is resent with the same token after a lost reply. Its Deadline counts from
// the first send if it was executed, else from the later one.
func TestAcquireWhoseAnswerIsLost(t *testing.T) {
	const ttl = time.Minute
	const drift = ttl/100 + 2*time.Millisecond
	lose, hang := faultdriver.Fault{Lose: true}, faultdriver.Fault{Hang: true}
	type test struct {
		plan []faultdriver.Fault
		from time.Duration // the Deadline counts from this long after the first send
	}
	eachCase(t, settings{attempt: time.Second}, map[string]test{
		"answered":            {},
		"executed":            {plan: []faultdriver.Fault{lose}},
		"executed repeatedly": {plan: []faultdriver.Fault{lose, lose}},
		"not executed":        {plan: []faultdriver.Fault{hang}, from: time.Second},
	}, func(t *testing.T, b *bench, tt test) {
		for _, fenced := range []bool{false, true} {
			start := time.Now()
			b.drv.Then(tt.plan...)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			lock, err := b.Acquire(ctx, locker.Request{Name: name, TTL: ttl, Fenced: fenced})
			cancel()
			wantNone(t, err)
			check.Equal(t, "commands", b.drv.Sent(), len(tt.plan)+1)
			check.Equal(t, "has a fence", lock.Fence() > 0, fenced)
			from := lock.Deadline().Sub(start) - ttl + drift
			check.Within(t, "start of the lease, after the first send", from, tt.from, tt.from+20*time.Millisecond)
			check.Equal(t, "holds", locker.Must(locker.Inspect(t.Context(), b.Locker, name)).Holds, 1)
			wantNone(t, lock.Release(t.Context()))
			b.wantFree(t)
			sleep(2 * time.Minute) // for the clean-up: the next plan is not for it
		}
	})
}

// An unanswered send executed late is undone, even behind the release of a later send's hold,
// behind a refusal, and behind the undo of a resume.
func TestLateSendsAreUndone(t *testing.T) {
	late := faultdriver.Fault{Late: 10 * time.Second}
	eachStrategy(t, settings{}, func(t *testing.T, b *bench) {
		b.drv.Then(late)
		wantNone(t, b.acquire(t, locker.Request{TTL: time.Hour}).Release(t.Context()))
		b.drv.WaitLate()
		b.wantFree(t)

		holder := b.acquire(t, locker.Request{TTL: time.Hour})
		b.drv.Then(late)
		wantIs(t, check.ErrOf(b.Acquire(t.Context(), locker.Request{Name: name, TTL: time.Hour})), locker.ErrNotAcquired)
		wantNone(t, holder.Release(t.Context()))
		b.drv.WaitLate()
		b.wantFree(t)

		old := b.acquire(t, locker.Request{TTL: time.Hour})
		b.drv.Then(late)
		resumed := locker.Must(locker.Resume(t.Context(), b, old.Handle()))
		wantNone(t, check.ErrOf(leaseOf(resumed).Do(t.Context(), lease.Op{Kind: lease.OpUndo})))
		b.drv.WaitLate()
		sleep(2 * time.Second)
		wantNone(t, old.Renew(t.Context(), 0))
		wantNone(t, old.Release(t.Context()))
	})
}

// A failed release is repeated, even long after an acquire with an unanswered send.
func TestReleaseIsRepeatedLongAfterAnOpenAcquire(t *testing.T) {
	eachStrategy(t, settings{}, func(t *testing.T, b *bench) {
		b.drv.Then(faultdriver.Fault{Hang: true})
		lock := b.acquire(t, locker.Request{TTL: time.Hour})
		sleep(40 * time.Minute)
		wantNone(t, lock.Renew(t.Context(), 0))
		sleep(30 * time.Minute)
		unsent := faultdriver.Fault{Err: driver.NotSent(faultdriver.ErrCut)}
		b.drv.Then(unsent, unsent, unsent)
		wantIs(t, lock.Release(t.Context()), driver.ErrNotSent)
		b.wantFree(t)
	})
}

// An acquire answered after its Deadline is undone.
func TestAcquireAnsweredTooLate(t *testing.T) {
	eachStrategy(t, settings{attempt: 5 * time.Second}, func(t *testing.T, b *bench) {
		b.drv.Then(faultdriver.Fault{Delay: 995 * time.Millisecond})
		_, err := b.Acquire(t.Context(), locker.Request{Name: name, TTL: time.Second})
		wantIs(t, err, locker.ErrLost)
		check.IsNot(t, err, locker.ErrNotAcquired, locker.ErrUnknownOutcome)
		synctest.Wait()
		sleep(2 * time.Millisecond)
		check.Equal(t, "the key is still there", b.m.Exists(name), false)
	})
}

// A resume answered after the end of its lease is undone: the Lock of the hold, renewed for longer,
// works again.
func TestResumeAnsweredTooLate(t *testing.T) {
	eachStrategy(t, settings{}, func(t *testing.T, b *bench) {
		lock := b.acquire(t, locker.Request{TTL: 300 * time.Millisecond})
		wantNone(t, lock.Renew(t.Context(), time.Minute))
		hang := faultdriver.Fault{Hang: true}
		b.drv.Then(faultdriver.Fault{Lose: true}, hang, hang, hang)
		wantIs(t, check.ErrOf(locker.Resume(t.Context(), b, lock.Handle())), locker.ErrLost)
		sleep(2 * time.Second)
		wantNone(t, lock.Renew(t.Context(), 0))
		wantNone(t, lock.Release(t.Context()))
		b.wantFree(t)
	})
}

// If a callback of the Trace panics after the acquire, the hold is undone; after a resume, the Lock
// of the hold works again.
func TestAcquireWhoseCallbackPanics(t *testing.T) {
	eachCase(t, settings{}, map[string]*locktrace.Trace{
		"Attempt":  {Attempt: func(context.Context, locktrace.AttemptInfo) { panic("a callback's own") }},
		"Acquired": {Acquired: func(context.Context, locktrace.AcquiredInfo) { panic("a callback's own") }},
	}, func(t *testing.T, b *bench, trace *locktrace.Trace) {
		panics := func(req locker.Request) {
			t.Helper()
			defer func() { check.Equal(t, "panic", recover(), "a callback's own") }()
			_, _ = b.Acquire(locktrace.With(t.Context(), trace), req)
		}
		panics(locker.Request{Name: name, TTL: time.Hour})
		b.wantFree(t)
		lock := b.acquire(t, locker.Request{TTL: time.Hour})
		panics(locker.Request{Name: name, Resume: lock.Handle()})
		sleep(time.Second)
		wantNone(t, lock.Renew(t.Context(), 0))
		wantNone(t, lock.Release(t.Context()))
		b.wantFree(t)
	})
}

// A step of the server's clock by the drift less 1 ms ends no lease before its Deadline. The
// millisecond is for rounding.
func TestDeadlineBearsAStep(t *testing.T) {
	eachStrategy(t, settings{}, func(t *testing.T, b *bench) {
		sleep(999 * time.Microsecond)
		lock := b.acquire(t, locker.Request{TTL: time.Second})
		sleep(time.Until(lock.Deadline()) - time.Nanosecond)
		const drift = time.Second/100 + 2*time.Millisecond
		b.m.SetTime(time.Now().Add(drift - time.Millisecond))
		wantIs(t, check.ErrOf(b.Acquire(t.Context(), locker.Request{Name: name, NoWait: true})), locker.ErrNotAcquired)
		wantNone(t, lock.Err())
	})
}

// The counter is never set to a value beyond increment, and an unfenced lock has none.
func TestRaiseFenceRefusesWhatItCannotCount(t *testing.T) {
	eachStrategy(t, settings{}, func(t *testing.T, b *bench) {
		raise := func(lock *locker.Lock, to int64) error {
			return check.ErrOf(leaseOf(lock).Do(t.Context(), lease.Op{Kind: lease.OpRaiseFence, Fence: to}))
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

// A command that fails without a write has an unknown outcome if an earlier send may still be
// executed.
func TestFailureBehindAnOpenSend(t *testing.T) {
	eachStrategy(t, settings{}, func(t *testing.T, b *bench) {
		lock := b.acquire(t, locker.Request{Fenced: true, TTL: time.Hour})
		high := lock.Fence() + time.Hour.Microseconds()
		raise := func() error {
			return check.ErrOf(leaseOf(lock).Do(t.Context(), lease.Op{Kind: lease.OpRaiseFence, Fence: high}))
		}
		const counter = "{job}:fence"
		wantNone(t, b.m.Set(counter, "soon"))
		sure := raise()
		wantIs(t, sure, driver.ErrPermanent)
		check.IsNot(t, sure, locker.ErrUnknownOutcome)
		b.drv.Then(faultdriver.Fault{Late: time.Second})
		wantIs(t, raise(), locker.ErrUnknownOutcome, driver.ErrPermanent)
		b.m.Del(counter)
		b.drv.WaitLate()
		if got, err := b.m.Get(counter); err != nil || got == "" {
			t.Errorf("the late send left the counter %q, %v", got, err)
		}
		wantNone(t, lock.Release(t.Context()))
		check.Equal(t, "token of the next holder", b.acquire(t, locker.Request{Fenced: true}).Fence(), high+1)
	})
}

// Another strategy's lock is reported as such and left alone, by an acquire and by a holder of the
// replaced lock.
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
			check.Equal(t, "data of "+other.name, b.m.Dump(), before)
			b.m.FlushAll()
		}
	})
}

// The owner in ctx is validated like the one in the Request.
func TestOwnerOfContextTooLong(t *testing.T) {
	eachStrategy(t, settings{}, func(t *testing.T, b *bench) {
		ctx := locker.WithOwner(t.Context(), strings.Repeat("o", locker.MaxNameLen+1))
		wantIs(t, check.ErrOf(b.Acquire(ctx, locker.Request{Name: name})), locker.ErrInvalid)
		check.Equal(t, "commands", b.drv.Sent(), 0)
	})
}
