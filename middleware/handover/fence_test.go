package handover_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
)

// Contract: the tokens of a name strictly increase. Those of hand-overs are reserved before.
func TestFences(t *testing.T) {
	inProcess(t, func(p process) {
		lock := p.acquire(locker.Request{Fenced: true})
		fence, handed := lock.Fence(), 0
		for range 5000 {
			next := p.wait(p.Context(), locker.Request{Fenced: true})
			check.Advance(3 * time.Microsecond)
			p.release(lock)
			lock = p.lock(next)
			if lock.Fence() <= fence || lock.Fence() > p.s.fence {
				p.Fatalf("token %d after %d, %d are reserved", lock.Fence(), fence, p.s.fence)
			}
			fence = lock.Fence()
			handed++
		}
		plain := p.wait(p.Context(), locker.Request{})
		p.release(lock)
		check.Equal(p.T, "token of a request without", p.lock(plain).Fence(), 0)
		p.release(plain.lock)
		p.s.mu.Lock()
		check.AtMost(p.T, "commands", len(p.s.log), 12)
		p.s.mu.Unlock()
		check.AtLeast(p.T, "token of the next tenure", p.acquire(locker.Request{Fenced: true}).Fence(), fence+1)
	})
}

// Tokens do not run ahead of their clock, however short the tenures. So they increase after the
// server has lost the counter, and beside a hold lost by the server.
func TestFencesFollowTheClock(t *testing.T) {
	inProcess(t, func(p process) {
		start := time.Now()
		clock := func() int64 { return 1000 + time.Since(start).Microseconds() }
		p.s.latency, p.s.mint = 50*time.Microsecond, clock
		p.l = handingOver(p.s, ms)
		for range 100 {
			held := p.acquire(locker.Request{Fenced: true})
			for range 20 {
				waiter := p.wait(p.Context(), locker.Request{Fenced: true})
				p.release(held)
				held = p.lock(waiter)
				check.AtMost(p.T, "token", held.Fence(), clock())
			}
			p.release(held)
		}
		held := p.acquire(locker.Request{Fenced: true})
		waiter := p.wait(p.Context(), locker.Request{Fenced: true})
		p.release(held)
		held, waiter = p.lock(waiter), p.wait(p.Context(), locker.Request{Fenced: true})
		p.s.lose() // and the counter
		p.s.fence = 0
		other := locker.Must(p.s.Acquire(p.Context(), locker.Request{Name: name, Fenced: true}))
		_ = held.Release(p.Context())
		late := p.lock(waiter)
		check.Equal(p.T, "handed over", waiter.handedOver(), true)
		check.AtMost(p.T, "token of a hold that was lost", late.Fence(), other.Fence()-1)
	})
}

// Tokens are not used if their reservation failed: the waiter acquires instead, in its turn.
func TestFencesAreNotReserved(t *testing.T) {
	inProcesses(t, map[string]func(p process){
		"refused": func(p process) {
			p.s.fail = func(k lease.OpKind) error {
				if k == lease.OpRaiseFence {
					return errors.New("broken")
				}
				return nil
			}
		},
		"raised beyond": func(p process) { p.s.fence = 1 << 40 },
	}, func(p process, spoil func(p process)) {
		held := p.acquire(locker.Request{Fenced: true})
		first, second := p.wait(p.Context(), locker.Request{Fenced: true}), p.wait(p.Context(), locker.Request{Fenced: true})
		spoil(p)
		fence := held.Fence()
		for _, next := range []*result{first, second} {
			p.release(held)
			check.Advance(ms)
			held = p.lock(next)
			check.AtLeast(p.T, "token", held.Fence(), fence+1)
			fence = held.Fence()
		}
		p.release(held)
	})
}

// If a waiter gives up while tokens are reserved, the next one gets the lock.
func TestGivingUpWhileTokensAreReserved(t *testing.T) {
	inProcess(t, func(p process) {
		p.s.latency = 10 * ms
		held := p.acquire(locker.Request{Fenced: true})
		ctx, cancel := context.WithCancel(p.Context())
		first, second := p.wait(ctx, locker.Request{Fenced: true}), p.wait(p.Context(), locker.Request{Fenced: true})
		p.sent("acquire")
		go func() { _ = held.Release(p.Context()) }()
		synctest.Wait()
		cancel()
		check.Advance(11 * ms)
		check.Is(p.T, first.err, context.Canceled)
		held = p.lock(second)
		check.Equal(p.T, "handed over", second.handedOver(), true)
		third := p.wait(p.Context(), locker.Request{Fenced: true})
		p.release(held)
		check.Equal(p.T, "handed over", third.handedOver(), true)
		p.sent("raise fence")
		p.release(p.lock(third))
		check.Advance(11 * ms)
	})
}

// A server silent during the reservation of tokens keeps no waiter beyond its MaxWait.
func TestSilenceWhileTokensAreReserved(t *testing.T) {
	inProcess(t, func(p process) {
		held := p.acquire(locker.Request{Fenced: true})
		waiter := p.wait(p.Context(), locker.Request{Fenced: true, MaxWait: 100 * ms})
		p.s.fail = func(lease.OpKind) error {
			elapse(5 * time.Second)
			return errors.New("timeout")
		}
		go func() { _ = held.Release(p.Context()) }()
		check.Advance(101 * ms)
		check.Is(p.T, waiter.err, locker.ErrNotAcquired, locker.ErrMaxWait)
		check.Advance(10 * time.Second)
		p.acquire(locker.Request{})
	})
}

// A token raised by the holder, as in a quorum, is followed by a higher one.
func TestRaisedFence(t *testing.T) {
	inProcess(t, func(p process) {
		const raised = 50_000
		held := p.acquire(locker.Request{Fenced: true})
		_, err := held.Hold().Lease().Do(p.Context(), lease.Op{Kind: lease.OpRaiseFence, Fence: raised})
		check.OK(p.T, err)
		waiter := p.wait(p.Context(), locker.Request{Fenced: true})
		p.release(held)
		check.Advance(ms)
		check.AtLeast(p.T, "token", p.lock(waiter).Fence(), raised+1)
	})
}
