package retry_test

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/middleware/retry"
)

// Locks that are never released are forgotten after the end of their lease.
func TestAbandonedTenures(t *testing.T) {
	inCohort(t, func(t *testing.T, c cohort) {
		for i := range 10_000 {
			locker.Must(c.l.Acquire(t.Context(), locker.Request{Name: strconv.Itoa(i)}))
			elapse(11 * time.Second)
		}
		if n := retry.Tenures(c.l); n > 1000 {
			t.Errorf("%d tenures are kept", n)
		}
	})
}

// A hold that the server lost is not handed over once it has granted the lock to another request of
// this process.
func TestNoHandOverBesideAHolder(t *testing.T) {
	cohorts(t, map[string]locker.Request{
		"shared": {Mode: locker.Shared, NoWait: true}, "owned": {Owner: "me", NoWait: true}, "exclusive": {NoWait: true},
	}, func(t *testing.T, c cohort, req locker.Request) {
		lost := c.acquire(locker.Request{})
		c.s.lose()
		held := c.acquire(req)
		waiter := c.wait(t.Context(), locker.Request{})
		check.Is(t, lost.Release(t.Context()), locker.ErrLost)
		synctest.Wait()
		if waiter.done {
			t.Error("two hold the lock")
		}
		c.release(held)
		c.release(c.lock(waiter))
	})
}

// A token that was raised beyond the block, as by a quorum, is followed by a higher one.
func TestRaisedFenceOfAHandOver(t *testing.T) {
	inCohort(t, func(t *testing.T, c cohort) {
		held := c.acquire(locker.Request{Fenced: true})
		for range 2 {
			waiter := c.wait(t.Context(), locker.Request{Fenced: true})
			c.release(held)
			held = c.lock(waiter)
		}
		const raised = 50_000
		held.Hold().Wrap(func(l lease.Lease) lease.Lease {
			locker.Must(l.Do(t.Context(), lease.Op{Kind: lease.OpRaiseFence, Fence: raised}))
			return l
		})
		waiter := c.wait(t.Context(), locker.Request{Fenced: true})
		c.release(held)
		if got := c.lock(waiter).Fence(); got <= raised {
			t.Errorf("token %d after %d", got, raised)
		}
	})
}

// A lock whose lease never ends is handed over with a token.
func TestFenceOfAnEndlessLease(t *testing.T) {
	inCohort(t, func(t *testing.T, c cohort) {
		c.s.endless = true
		held := c.acquire(locker.Request{Fenced: true})
		waiter := c.wait(t.Context(), locker.Request{Fenced: true})
		c.s.commands()
		c.release(held)
		if got := c.lock(waiter).Fence(); got <= held.Fence() {
			t.Errorf("token %d after %d", got, held.Fence())
		}
		c.sent("raise fence")
	})
}

// A waiter that becomes the first during a tenure is woken, however the tenure ends.
func TestWokenAfterATenure(t *testing.T) {
	cohorts(t, map[string]func(t *testing.T, c cohort, held *locker.Lock){
		"forgotten after a loss": func(t *testing.T, c cohort, held *locker.Lock) {
			t.Helper()
			c.s.lose()
			check.Is(t, held.Renew(t.Context(), 0), locker.ErrLost)
			for i := range 100 {
				locker.Must(c.l.Acquire(t.Context(), locker.Request{Name: strconv.Itoa(i)}))
				c.s.lose()
			}
		},
		"given back": func(t *testing.T, c cohort, held *locker.Lock) {
			t.Helper()
			held.Hold().Wrap(func(l lease.Lease) lease.Lease {
				_, _ = l.Do(t.Context(), lease.Op{Kind: lease.OpUndo}) // the store does not know it
				return l
			})
			c.s.lose()
		},
	}, func(t *testing.T, c cohort, end func(t *testing.T, c cohort, held *locker.Lock)) {
		held := c.acquire(locker.Request{})
		ctx, cancel := context.WithCancel(t.Context())
		c.wait(ctx, locker.Request{})
		waiter := c.wait(t.Context(), locker.Request{MaxWait: time.Minute})
		cancel()
		synctest.Wait()
		end(t, c, held)
		elapse(1100 * ms)
		c.release(c.lock(waiter))
	})
}

// A release while the waiters let other processes go first wakes them afterwards.
func TestReleaseWhileOthersGoFirst(t *testing.T) {
	inCohort(t, func(t *testing.T, c cohort) {
		c.l = wrap(t, c.s, retry.Config{HandOver: 2 * time.Second, Policy: constant(time.Hour)})
		held := c.acquire(locker.Request{})
		waiter := c.wait(t.Context(), locker.Request{})
		elapse(2100 * ms)
		c.release(held)
		elapse(ms / 2)
		quick := c.acquire(locker.Request{NoWait: true})
		quick.Handle() // so that it is not handed over
		c.release(quick)
		elapse(ms)
		c.release(c.lock(waiter))
	})
}

// A waiter asks when the lease of a lock ends that nobody releases.
func TestEndOfATenuresLease(t *testing.T) {
	inCohort(t, func(t *testing.T, c cohort) {
		c.s.ttl = 200 * ms
		c.acquire(locker.Request{})
		gone, behind := c.wait(t.Context(), locker.Request{MaxWait: 100 * ms}), c.wait(t.Context(), locker.Request{MaxWait: 300 * ms})
		check.Advance(201 * ms)
		check.Is(t, gone.err, locker.ErrNotAcquired)
		c.release(c.lock(behind))
	})
}

// A nested acquire tries at once, also where its own lock is what others wait for.
func TestNestedDuringATenure(t *testing.T) {
	cohorts(t, map[string]string{"its own": "me", "another's": ""}, func(t *testing.T, c cohort, owner string) {
		held := c.acquire(locker.Request{Owner: owner})
		c.s.commands()
		nested := c.wait(t.Context(), locker.Request{Owner: "me"})
		c.sent("acquire")
		c.release(held)
		c.release(c.lock(nested))
	})
}

// A shared request that came first is not overtaken by a hand-over, also where the strategy orders
// the modes.
func TestNoHandOverBeforeAShared(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		s.transfer, s.ordered = true, true
		l := wrap(t, s, retry.Config{HandOver: time.Hour})
		held := locker.Must(l.Acquire(t.Context(), locker.Request{Name: name}))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		s.begin(ctx, l, locker.Request{Mode: locker.Shared})
		s.begin(ctx, l, locker.Request{})
		check.OK(t, held.Release(t.Context()))
		same(t, "releases at the server", s.released, 1)
		cancel()
	})
}

// The server's answer names the first holder of a tenure; an error names the one of now.
func TestRefusedByTheServerDuringATenure(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		s.transfer, s.unnamed = true, true
		l := wrap(t, s, retry.Config{HandOver: time.Hour})
		first := locker.Must(l.Acquire(t.Context(), locker.Request{Name: name, Note: "first"}))
		second := s.begin(t.Context(), l, locker.Request{Note: "second"})
		check.OK(t, first.Release(t.Context()))
		synctest.Wait()
		refused := s.begin(t.Context(), l, locker.Request{MaxWait: 1500 * ms})
		elapse(1501 * ms)
		refused.wantError(t, 1500*ms, locker.ErrNotAcquired)
		held, _ := errors.AsType[*locker.ContentionError](refused.err)
		if n := len(s.attempts); n < 2 || held.Note != "second" || held.Owner != second.lock.Owner() {
			t.Errorf("%d attempts, %v", n, refused.err)
		}
		check.OK(t, second.lock.Release(t.Context()))
	})
}

// Where no fencing tokens can be reserved, waiters are served in their order after the first
// failure.
func TestOrderWithoutAFenceBlock(t *testing.T) {
	inCohort(t, func(t *testing.T, c cohort) {
		c.s.fail = func(k lease.OpKind) error {
			if k == lease.OpRaiseFence {
				return errors.New("no permission")
			}
			return nil
		}
		held := c.acquire(locker.Request{Fenced: true})
		unlucky, next := c.wait(t.Context(), locker.Request{Fenced: true}), c.wait(t.Context(), locker.Request{Fenced: true})
		c.release(held)
		held = c.lock(next)
		behind := c.wait(t.Context(), locker.Request{Fenced: true})
		c.release(held)
		c.release(c.lock(unlucky))
		c.release(c.lock(behind))
	})
}

// A server that does not answer does not keep a waiter that a lock was handed over to, and which
// has to give it up, beyond its MaxWait.
func TestSilenceAtAHandOver(t *testing.T) {
	inCohort(t, func(t *testing.T, c cohort) {
		held := c.acquire(locker.Request{Fenced: true})
		waiter := c.wait(t.Context(), locker.Request{Fenced: true, MaxWait: 100 * ms})
		c.s.fail = func(k lease.OpKind) error {
			if k == lease.OpRelease {
				elapse(5 * time.Second)
				return nil
			}
			elapse(100 * ms)
			return errors.New("timeout")
		}
		c.release(held)
		check.Advance(101 * ms)
		if !waiter.done {
			t.Error("the waiter has not returned")
		}
		elapse(5 * time.Second)
		c.acquire(locker.Request{})
	})
}
