package conformance

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/conformance/internal/suite"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/locktrace"
	"github.com/holdfast-go/holdfast/middleware/retry"
)

var handOverCases = []testCase{
	{
		name: "a hand-over is a hold of its own", contract: 13, on: suite.WithoutSentinel, can: handsOver,
		why: "it sends nothing, so only the process keeps the old Lock, its Handle and its token from being used beside the new ones",
		run: handOverIsAHold,
	},
}

// handOverIsAHold passes a lock along three waiters of one process, in any order: the first one that
// has no attempt in flight gets it. A strategy that cannot hand over must behave in the same way. One
// that renews by itself wraps leases, as the suite does for a cool-down, and retry refuses to hand
// over around it.
func handOverIsAHold(t *caseT) {
	l, name := t.waiting(t.direct(), retry.Config{HandOver: time.Hour}), t.Key()
	req := locker.Request{Name: name, TTL: long, Fenced: true}
	held := t.acquire(l, req)
	handed, got := make(chan struct{}, 3), make(chan *locker.Lock)
	for i := range cap(handed) {
		traced := locker.Func(func(ctx context.Context, req locker.Request) (*locker.Lock, error) {
			return l.Acquire(locktrace.With(ctx,
				&locktrace.Trace{Woken: func(_ context.Context, info locktrace.WokenInfo) {
					if info.By == locktrace.ByHandOver {
						handed <- struct{}{}
					}
				}}), req)
		})
		ch := t.waitAs(traced, req, func(info locktrace.WaitingInfo) bool { return info.Queued == i })
		go func() {
			select {
			case got <- <-ch:
			case <-t.Ctx.Done():
			}
		}()
	}
	for i := range cap(handed) {
		t.OK(held.Release(t.Ctx), "Release")
		next := t.got(got, "in the queue")
		t.Is(held.Err(), locker.ErrReleased, "Err of the lock that was released")
		t.Is(held.Release(t.Ctx), locker.ErrReleased, "Release of the lock that was released")
		if next.Fence() <= held.Fence() {
			t.Errorf("waiter %d has the token %d, after %d", i, next.Fence(), held.Fence())
		}
		select {
		case <-handed:
			if next.Deadline().IsZero() || next.Deadline().After(held.Deadline()) {
				t.Errorf("waiter %d has the lock until %v, the lease of the one before ended at %v", i, next.Deadline(),
					held.Deadline())
			}
		default:
		}
		if _, err := locker.Resume(t.Ctx, t.direct(), held.Handle()); err == nil {
			t.Errorf("the Handle of the lock that was released resumed the lock of waiter %d", i)
		}
		_, err := t.direct().Acquire(t.Ctx, locker.Request{Name: name, TTL: long, NoWait: true})
		t.Is(err, locker.ErrNotAcquired, "an acquire of another process")
		t.OK(next.Renew(t.Ctx, 0), "Renew of the lock that was handed over")
		held = next
	}
	t.OK(held.Release(t.Ctx), "Release")
	after := t.acquire(t.direct(), req)
	if after.Fence() <= held.Fence() {
		t.Errorf("another process has the token %d, after %d", after.Fence(), held.Fence())
	}
	t.OK(after.Release(t.Ctx), "Release")
}
