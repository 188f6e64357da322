package handover_test

import (
	"context"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/lockerrors"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
)

// If the reply to a release is lost, the next request asks the server 50 ms later, after the pause
// between two tenures. The end of that release changes nothing any more.
func TestLostReplyToARelease(t *testing.T) {
	inProcesses(t, map[string]bool{"of a request that waited": false, "of a request that comes later": true}, func(p process, late bool) {
		const timeout = 6 * time.Second
		p.s.ttl = time.Minute
		held := p.acquire(locker.Request{})
		held.Handle() // so its release is sent
		var waiter *result
		if !late {
			waiter = p.wait(p.Context(), locker.Request{})
		}
		p.s.fail = func(kind lease.OpKind) error {
			if kind == lease.OpRelease {
				p.s.lose()
				elapse(timeout)
				return io.EOF
			}
			return nil
		}
		released := make(chan error, 1)
		go func() { released <- held.Release(p.Context()) }()
		synctest.Wait()
		p.s.fail = nil
		if late {
			waiter = p.wait(p.Context(), locker.Request{})
		}
		check.Advance(50*ms - 1)
		p.sent("acquire")
		check.Advance(100*ms + 1)
		lock := p.lock(waiter)
		p.sent("acquire")
		next := p.wait(p.Context(), locker.Request{})
		check.Advance(timeout)
		check.Is(p.T, <-released, io.EOF)
		check.Equal(p.T, "two hold the lock", next.done, false)
		p.release(lock)
		p.release(p.lock(next))
		check.Equal(p.T, "handed over", next.handedOver(), true)
	})
}

// A server that falls silent at a release is reported as silent, not as a holder, to those that lead
// the line and to those behind.
func TestSilenceFromARelease(t *testing.T) {
	inProcess(t, func(p process) {
		const timeout = 3 * time.Second
		silent := false
		p.l = handingOver(locker.Func(func(ctx context.Context, req locker.Request) (*locker.Lock, error) {
			if !silent {
				return p.s.Acquire(ctx, req)
			}
			ctx, cancel := context.WithTimeout(ctx, timeout)
			defer cancel()
			<-ctx.Done()
			return nil, lockerrors.NewAttemptError("10.0.0.1:6379", timeout, ctx.Err())
		}), 10*ms)
		p.s.fail = func(lease.OpKind) error {
			elapse(2 * timeout)
			return io.EOF
		}
		held := p.acquire(locker.Request{})
		leader, behind := p.wait(p.Context(), locker.Request{MaxWait: 2 * time.Second}), p.wait(p.Context(), locker.Request{MaxWait: 1500 * ms})
		check.Advance(20 * ms)
		silent = true
		go func() { _ = held.Release(p.Context()) }()
		check.Advance(2 * time.Second)
		for _, r := range []*result{leader, behind} {
			check.Is(p.T, r.err, locker.ErrMaxWait)
			check.IsNot(p.T, r.err, locker.ErrNotAcquired)
			if !strings.HasPrefix(text(r.err), `holdfast: acquire "job": no answer from `) {
				p.Errorf("got %v", r.err)
			}
		}
		check.Advance(2 * timeout)
	})
}
