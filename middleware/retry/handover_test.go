package retry_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/locker/locktrace"
	"github.com/holdfast-go/holdfast/middleware/retry"
)

// A release passes the lock on to the next in line, without a command. The new Lock is a hold of
// its own.
func TestHandOver(t *testing.T) {
	inCohort(t, func(t *testing.T, c cohort) {
		first := c.acquire(locker.Request{})
		waiting := []*result{c.wait(c.Context(), locker.Request{}), c.wait(c.Context(), locker.Request{})}
		c.sent("acquire")
		elapse(1100 * ms)
		c.sent("acquire") // the first waiter asks once a second
		c.release(first)
		second := c.lock(waiting[0])
		if waiting[1].done {
			t.Error("two hold the lock")
		}
		if second.Owner() == first.Owner() || !second.Deadline().Equal(first.Deadline()) || second.Err() != nil {
			t.Errorf("got %v until %v, err %v; after %v until %v", second, second.Deadline(), second.Err(), first, first.Deadline())
		}
		check.Is(t, first.Release(t.Context()), locker.ErrReleased)
		check.Is(t, first.Renew(t.Context(), 0), locker.ErrReleased)
		c.release(second)
		third := c.lock(waiting[1])
		c.sent()
		check.OK(t, third.Renew(t.Context(), 0))
		c.release(third)
		c.sent("renew", "release")
		c.acquire(locker.Request{})
		c.sent("acquire")
	})
}

// What keeps a release from being a hand-over: then the server gets it, and the waiter acquires.
func TestNoHandOver(t *testing.T) {
	type test struct {
		holder, waiter locker.Request
		before         func(c cohort, held *locker.Lock)
	}
	cohorts(t, map[string]test{
		"an owner that waits":      {waiter: locker.Request{Owner: "me"}},
		"an owner that holds":      {holder: locker.Request{Owner: "me"}},
		"another TTL":              {waiter: locker.Request{TTL: time.Minute}},
		"a token where none is":    {waiter: locker.Request{Fenced: true}},
		"a shared request":         {waiter: locker.Request{Mode: locker.Shared}},
		"a shared hold":            {holder: locker.Request{Mode: locker.Shared}},
		"a Handle in other hands":  {before: func(_ cohort, held *locker.Lock) { held.Handle() }},
		"a lease that nearly ends": {before: func(cohort, *locker.Lock) { elapse(8 * time.Second) }},
	}, func(t *testing.T, c cohort, tt test) {
		held := c.acquire(tt.holder)
		waiter := c.wait(t.Context(), tt.waiter)
		if tt.before != nil {
			tt.before(c, held)
		}
		c.s.commands()
		c.release(held)
		c.release(c.lock(waiter))
		c.sent("release", "acquire", "release")
	})
}

// Contract: the tokens of a name strictly increase. Those of hand-overs are reserved in blocks.
func TestFencesOfHandOvers(t *testing.T) {
	inCohort(t, func(t *testing.T, c cohort) {
		const turns = 10_000
		lock := c.acquire(locker.Request{Fenced: true})
		fence := lock.Fence()
		for range turns {
			next := c.wait(t.Context(), locker.Request{Fenced: true})
			c.release(lock)
			lock = c.lock(next)
			if lock.Fence() <= fence {
				t.Fatalf("token %d after %d", lock.Fence(), fence)
			}
			fence = lock.Fence()
		}
		plain := c.wait(t.Context(), locker.Request{})
		c.release(lock)
		same(t, "token of a request without", c.lock(plain).Fence(), 0)
		c.release(plain.lock)
		c.sent("acquire", "raise fence", "raise fence", "raise fence", "release")
		if again := c.acquire(locker.Request{Fenced: true}); again.Fence() <= fence {
			t.Errorf("token %d after %d", again.Fence(), fence)
		}
	})
}

// A block of tokens that somebody else may have used is not used. The waiter acquires instead.
func TestFenceBlockIsNotReserved(t *testing.T) {
	cohorts(t, map[string]func(c cohort){
		"refused": func(c cohort) {
			c.s.fail = func(k lease.OpKind) error {
				if k == lease.OpRaiseFence {
					return errors.New("broken")
				}
				return nil
			}
		},
		"raised beyond": func(c cohort) { c.s.fence = 1 << 40 },
	}, func(t *testing.T, c cohort, spoil func(c cohort)) {
		held := c.acquire(locker.Request{Fenced: true})
		waiter := c.wait(t.Context(), locker.Request{Fenced: true})
		spoil(c)
		c.s.commands()
		c.release(held)
		c.release(c.lock(waiter))
		if got := c.s.commands(); !slices.Equal(got[len(got)-3:], []string{"release", "acquire", "release"}) {
			t.Errorf("commands: %v", got)
		}
		if waiter.lock.Fence() <= held.Fence() {
			t.Errorf("token %d after %d", waiter.lock.Fence(), held.Fence())
		}
	})
}

// HandOver bounds a tenure, however many wait here: then another process has a turn.
func TestHandOverIsBounded(t *testing.T) {
	inCohort(t, func(t *testing.T, c cohort) {
		c.s.latency = ms / 10
		c.l = wrap(t, c.s, retry.Config{HandOver: time.Second})
		other := wrap(t, c.s, retry.Config{Policy: constant(ms / 10)})
		stop := make(chan struct{})
		var turns atomic.Int64
		for range 8 {
			go func() {
				for {
					lock := c.acquire(locker.Request{})
					turns.Add(1)
					elapse(10 * ms)
					check.OK(t, lock.Release(context.WithoutCancel(t.Context())))
					select {
					case <-stop:
						return
					default:
					}
				}
			}()
		}
		elapse(ms)
		start := time.Now()
		for range 5 {
			began := time.Now()
			lock, err := other.Acquire(t.Context(), locker.Request{Name: name})
			if waited := time.Since(began); err != nil || waited > 1100*ms {
				t.Fatalf("another process waited %v: %v", waited, err)
			}
			elapse(10 * ms)
			check.OK(t, lock.Release(t.Context()))
			elapse(10 * ms)
		}
		if took, n := time.Since(start), turns.Load(); time.Duration(n)*10*ms < took*8/10 {
			t.Errorf("%d turns of 10 ms in %v", n, took)
		}
		close(stop)
		elapse(time.Second)
	})
}

// A lease of which less than half is left is renewed when it is handed over.
func TestHandOverRenews(t *testing.T) {
	type test struct {
		fail     error
		lost     bool
		deadline time.Duration // of the new lock, after the acquire of the old one
		sent     []string
	}
	cohorts(t, map[string]test{
		"done":     {nil, false, 16 * time.Second, []string{"renew"}},
		"no reply": {errors.New("timeout"), false, 10 * time.Second, nil},
		"lost":     {nil, true, 16 * time.Second, []string{"renew", "release", "acquire"}},
	}, func(t *testing.T, c cohort, tt test) {
		start := time.Now()
		held := c.acquire(locker.Request{})
		elapse(6 * time.Second)
		waiter := c.wait(t.Context(), locker.Request{})
		c.s.fail = func(k lease.OpKind) error {
			if k == lease.OpRenew {
				return tt.fail
			}
			return nil
		}
		if tt.lost {
			c.s.lose()
		}
		c.s.commands()
		c.release(held)
		same(t, "Deadline of the next lock", c.lock(waiter).Deadline().Sub(start), tt.deadline)
		c.sent(tt.sent...)
	})
}

// The Handle of a lock that was handed over names no hold.
func TestHandleAfterHandOver(t *testing.T) {
	inCohort(t, func(t *testing.T, c cohort) {
		held := c.acquire(locker.Request{})
		waiter := c.wait(t.Context(), locker.Request{})
		c.release(held)
		lock := c.lock(waiter)
		if stale, now := held.Handle().Grant().Token, lock.Handle().Grant().Token; stale == now || now == "" {
			t.Errorf("the old Handle has the token %q, the new one %q", stale, now)
		}
	})
}

// A lock that was lost is released at the server.
func TestNoHandOverOfALostLock(t *testing.T) {
	inCohort(t, func(t *testing.T, c cohort) {
		held := c.acquire(locker.Request{})
		waiter := c.wait(t.Context(), locker.Request{})
		elapse(11 * time.Second)
		lock := c.lock(waiter) // it looked
		check.Is(t, held.Release(t.Context()), locker.ErrLost)
		if lock.Err() != nil {
			t.Errorf("the next lock: %v", lock.Err())
		}
		c.release(lock)
	})
}

// A request asks the server where the lock of this process was lost, and never released.
func TestRequestAfterALostTenure(t *testing.T) {
	cohorts(t, map[string]func(t *testing.T, c cohort, held *locker.Lock){
		"its lease ran out": func(*testing.T, cohort, *locker.Lock) { elapse(11 * time.Second) },
		"a renewal found it gone": func(t *testing.T, c cohort, held *locker.Lock) {
			t.Helper()
			c.s.lose()
			check.Is(t, held.Renew(t.Context(), 0), locker.ErrLost)
		},
	}, func(t *testing.T, c cohort, lose func(t *testing.T, c cohort, held *locker.Lock)) {
		lose(t, c, c.acquire(locker.Request{}))
		c.s.commands()
		c.acquire(locker.Request{MaxWait: ms})
		c.sent("acquire")
	})
}

// A lease that ends while a waiter lets other processes go first does not make it spin.
func TestLeaseEndsDuringAYield(t *testing.T) {
	inCohort(t, func(t *testing.T, c cohort) {
		c.s.latency, c.s.ttl = 100*ms, time.Second
		c.l = wrap(t, c.s, retry.Config{HandOver: ms, Policy: constant(time.Minute)})
		locker.Must(c.s.Acquire(t.Context(), locker.Request{Name: name})) // by another process
		waiter := c.wait(t.Context(), locker.Request{})
		elapse(300 * ms) // it is refused, and knows that the lease ends after 1.1 s
		c.s.lose()
		c.s.ttl = time.Minute
		held := c.acquire(locker.Request{NoWait: true})
		elapse(350 * ms)
		began := time.Now()
		check.OK(t, held.Release(t.Context()))
		elapse(600 * ms)
		c.release(c.lock(waiter))
		if waited := time.Since(began); waited > time.Second {
			t.Errorf("the waiter held and released the lock %v after the release", waited)
		}
	})
}

// A waiter that gives up while the lock is handed over to it gets the lock; nothing is left.
func TestGivingUpAtAHandOver(t *testing.T) {
	inCohort(t, func(t *testing.T, c cohort) {
		for range 100 {
			held := c.acquire(locker.Request{})
			ctx, cancel := context.WithCancel(t.Context())
			waiter, next := c.wait(ctx, locker.Request{}), c.wait(t.Context(), locker.Request{})
			go cancel()
			c.release(held)
			if waiter.err == nil {
				c.release(waiter.lock)
			}
			c.release(c.lock(next))
			if c.s.value != "" {
				t.Fatal("the lock is held")
			}
		}
	})
}

// A callback that panics while a lock is handed over keeps nobody from the lock.
func TestPanicAtAHandOver(t *testing.T) {
	inCohort(t, func(t *testing.T, c cohort) {
		held := c.acquire(locker.Request{})
		panicked := make(chan any, 1)
		go func() {
			defer func() { panicked <- recover() }()
			ctx := locktrace.With(t.Context(), &locktrace.Trace{Woken: func(context.Context, locktrace.WokenInfo) { panic("callback") }})
			_, _ = c.l.Acquire(ctx, locker.Request{Name: name})
		}()
		synctest.Wait()
		next := c.wait(t.Context(), locker.Request{})
		c.s.commands()
		c.release(held)
		if got := <-panicked; got != "callback" {
			t.Errorf("recovered %v", got)
		}
		c.release(c.lock(next))
		c.sent("release", "acquire", "release")
	})
}

// A hand-over is reported, with who had the lock before.
func TestHandOverIsTraced(t *testing.T) {
	inCohort(t, func(t *testing.T, c cohort) {
		held := c.acquire(locker.Request{})
		var woken []locktrace.WokenInfo
		var acquired []locktrace.AcquiredInfo
		ctx := locktrace.With(t.Context(), &locktrace.Trace{
			Woken:    func(_ context.Context, i locktrace.WokenInfo) { woken = append(woken, i) },
			Acquired: func(_ context.Context, i locktrace.AcquiredInfo) { acquired = append(acquired, i) },
		})
		waiter := c.wait(ctx, locker.Request{})
		elapse(ms)
		c.release(held)
		lock := c.lock(waiter)
		equal(t, "woken", woken, []locktrace.WokenInfo{
			{Name: name, Mode: "exclusive", By: locktrace.ByHandOver, Waited: ms, From: held.Owner()},
		})
		if len(acquired) != 1 || acquired[0].Owner != lock.Owner() || acquired[0].Deadline != lock.Deadline() {
			t.Errorf("acquired %+v, lock %v", acquired, lock)
		}
	})
}

// Who gives up behind a lock that will be handed over learns who holds it.
func TestRefusedDuringATenure(t *testing.T) {
	inCohort(t, func(t *testing.T, c cohort) {
		held := c.acquire(locker.Request{Note: "first"})
		for _, note := range []string{"first", "second"} {
			refused := c.wait(t.Context(), locker.Request{MaxWait: ms})
			check.Advance(ms)
			contention, ok := errors.AsType[*locker.ContentionError](refused.err)
			if !ok || contention.Owner != held.Owner() || contention.Note != note {
				t.Errorf("got %v, want a ContentionError of %s, %s", refused.err, held.Owner(), note)
			}
			check.Is(t, refused.err, locker.ErrNotAcquired, locker.ErrMaxWait)
			next := c.wait(t.Context(), locker.Request{Note: "second"})
			c.release(held)
			held = c.lock(next)
		}
	})
}

// Middleware that wraps leases acts for one Lock, so it belongs around retry.
func TestHandOverAroundAWrapper(t *testing.T) {
	inCohort(t, func(t *testing.T, c cohort) {
		wrapping := locker.Func(func(ctx context.Context, req locker.Request) (*locker.Lock, error) {
			lock, err := c.s.Acquire(ctx, req)
			if err == nil {
				lock.Hold().Wrap(func(l lease.Lease) lease.Lease { return wrapper{l} })
			}
			return lock, err
		})
		_, err := wrap(t, wrapping, retry.Config{HandOver: time.Second}).Acquire(t.Context(), locker.Request{Name: name})
		check.Is(t, err, locker.ErrInvalid)
		c.sent("acquire", "release")
	})
}

type wrapper struct{ lease.Lease }

func (w wrapper) Unwrap() lease.Lease { return w.Lease }
