package handover_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/locker/lockertest"
	"github.com/holdfast-go/holdfast/locker/locktrace"
)

// A callback that panics keeps nobody from the lock, whoever had it.
func TestPanics(t *testing.T) {
	boom := func() { panic("callback") }
	inProcesses(t, map[string]locktrace.Trace{
		"while it waits":       {Waiting: func(context.Context, locktrace.WaitingInfo) { boom() }},
		"at a hand-over":       {Woken: func(context.Context, locktrace.WokenInfo) { boom() }},
		"with the new lock":    {Acquired: func(context.Context, locktrace.AcquiredInfo) { boom() }},
		"at its first attempt": {Acquired: func(context.Context, locktrace.AcquiredInfo) { boom() }},
	}, func(p process, trace locktrace.Trace) {
		var held *locker.Lock
		if p.Name() != "TestPanics/at_its_first_attempt" {
			held = p.acquire(locker.Request{})
		}
		unlucky := p.wait(locktrace.With(p.Context(), &trace), locker.Request{})
		next := p.wait(p.Context(), locker.Request{})
		if held != nil {
			p.release(held)
		}
		p.release(p.lock(next))
		if unlucky.lock != nil {
			p.release(unlucky.lock) // nothing was traced
		} else {
			check.Equal(p.T, "panic", unlucky.panicked, any("callback"))
		}
		check.Equal(p.T, "value at the server", p.s.value, "")
	})
}

// A blocked callback delays its own acquisition only: no release, and no other name. An acquire of
// the same lock in it is refused or waits as without hand-overs.
func TestBlockedCallbacks(t *testing.T) {
	inProcess(t, func(p process) {
		p.l = handingOver(lockertest.New(), time.Hour)
		held := p.acquire(locker.Request{})
		blocked := make(chan struct{})
		slow := p.wait(locktrace.With(p.Context(), &locktrace.Trace{Woken: func(context.Context, locktrace.WokenInfo) { <-blocked }}), locker.Request{})
		next := p.wait(p.Context(), locker.Request{})
		p.release(held)
		check.Equal(p.T, "the next one has the lock", next.done, false)
		other := locker.Must(p.l.Acquire(p.Context(), locker.Request{Name: "other", MaxWait: ms}))
		check.OK(p.T, other.Release(p.Context()))
		close(blocked)
		p.release(p.lock(slow))
		p.release(p.lock(next))
	})
}

// A callback that acquires the same lock is refused while its caller has it.
func TestCallbacksThatAcquire(t *testing.T) {
	inProcess(t, func(p process) {
		acquire := func() error {
			lock, err := p.l.Acquire(context.Background(), locker.Request{Name: name, MaxWait: ms})
			if err == nil {
				err = lock.Release(context.Background())
			}
			return err
		}
		var ended, woken error
		held := p.acquire(locker.Request{})
		held.AfterDone(func(error) { ended = acquire() })
		waiter := p.wait(locktrace.With(p.Context(), &locktrace.Trace{Woken: func(context.Context, locktrace.WokenInfo) { woken = acquire() }}), locker.Request{})
		p.release(held)
		check.Advance(2 * ms)
		check.Is(p.T, ended, locker.ErrNotAcquired, locker.ErrMaxWait)
		check.Is(p.T, woken, locker.ErrNotAcquired, locker.ErrMaxWait)
		p.release(p.lock(waiter))
		synctest.Wait()
	})
}

// If a Lease panics while it reserves tokens, no hold stays behind: the release is sent.
func TestPanicWhileTokensAreReserved(t *testing.T) {
	inProcess(t, func(p process) {
		p.s.fail = func(kind lease.OpKind) error {
			if kind == lease.OpRaiseFence {
				panic("lease")
			}
			return nil
		}
		held := p.acquire(locker.Request{Fenced: true})
		waiter := p.wait(p.Context(), locker.Request{Fenced: true})
		func() {
			defer func() { check.Equal(p.T, "panic", recover(), any("lease")) }()
			_ = held.Release(p.Context())
		}()
		check.Advance(2 * ms)
		p.release(p.lock(waiter))
	})
}
