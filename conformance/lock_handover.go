package conformance

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/conformance/internal/suite"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/locktrace"
)

var handOverCases = []testCase{
	{
		name: "a hand-over is a hold of its own", contract: 13, on: suite.WithoutSentinel, can: handsOver,
		why: "it sends nothing, so only the process keeps the old Lock, its Handle and its token from being used beside the new ones",
		run: handOverIsAHold,
	},
	{
		name: "a hand-over keeps the lease", contract: 4, on: suite.OnlyMemory, can: handsOver,
		why: "it sends nothing, so nothing moves the end of the lease at the server",
		run: handOverKeepsTheLease,
	},
	{
		name: "Break ends hand-overs", contract: 7, on: suite.OnlyMemory, can: handsOver,
		why: "a hold that the server no longer has must not be handed on for as long as the tenure lasts",
		run: breakEndsHandOvers,
	},
}

// handOverIsAHold passes a lock along three waiters of one process. A strategy whose locks are not
// handed over must behave in the same way.
func handOverIsAHold(t *caseT) {
	const waiters = 3
	l, name := t.handingOver(t.direct(), time.Hour), t.Key()
	req := locker.Request{Name: name, TTL: long, Fenced: true}
	held := t.acquire(l, req)
	got := make(chan *locker.Lock)
	for i := range waiters {
		ch := t.waitAs(l, req, func(info locktrace.WaitingInfo) bool { return info.Queued == i })
		go func() {
			select {
			case got <- <-ch:
			case <-t.Ctx.Done():
			}
		}()
	}
	for i := range waiters {
		t.OK(held.Release(t.Ctx), "Release")
		next := t.got(got, "in the queue")
		t.Is(held.Err(), locker.ErrReleased, "Err of the lock that was released")
		t.Is(held.Release(t.Ctx), locker.ErrReleased, "Release of the lock that was released")
		if next.Fence() <= held.Fence() {
			t.Errorf("waiter %d has the token %d, after %d", i, next.Fence(), held.Fence())
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

// handOverKeepsTheLease hands a lock over some time after its acquire.
func handOverKeepsTheLease(t *caseT) {
	l, req := t.handingOver(t.direct(), time.Hour), locker.Request{Name: t.Key(), TTL: long}
	held := t.acquire(l, req)
	handed := false
	ctx := locktrace.With(t.Ctx, &locktrace.Trace{Woken: func(_ context.Context, info locktrace.WokenInfo) {
		handed = info.By == locktrace.ByHandOver
	}})
	waiter := t.waitUnder(ctx, l, req, func(locktrace.WaitingInfo) bool { return true })
	pause(10 * time.Millisecond)
	t.OK(held.Release(t.Ctx), "Release")
	next := t.got(waiter, "in the queue")
	if handed && !next.Deadline().Equal(held.Deadline()) {
		t.Errorf("a waiter has the lock until %v, the lease of the one before ended at %v", next.Deadline(), held.Deadline())
	}
	t.OK(next.Release(t.Ctx), "Release of the next holder")
}

// breakEndsHandOvers hands a lock on and on, and ends the hold meanwhile: within 50 ms a release
// returns ErrLost, and the next waiter acquires.
func breakEndsHandOvers(t *caseT) {
	const most = 50 * time.Millisecond
	l, req := t.handingOver(t.direct(), time.Hour), locker.Request{Name: t.Key(), TTL: long}
	held, ended := t.acquire(l, req), time.Time{}
	for i := range 100 {
		waiter := t.wait(l, req)
		pause(5 * time.Millisecond)
		if i == 10 {
			if _, ok := t.breaks(t.direct(), req.Name); !ok {
				t.OK(held.Release(t.Ctx), "Release")
				t.OK(t.got(waiter, "in the queue").Release(t.Ctx), "Release")
				return
			}
			ended = time.Now()
		}
		err := held.Release(t.Ctx)
		held = t.got(waiter, "in the queue")
		if !ended.IsZero() && errors.Is(err, locker.ErrLost) {
			break
		}
		t.OK(err, "Release")
		if !ended.IsZero() && time.Since(ended) > most {
			t.Fatalf("the hold is handed over %v after Break", time.Since(ended))
		}
	}
	_, err := t.direct().Acquire(t.Ctx, locker.Request{Name: req.Name, TTL: long, NoWait: true})
	t.Is(err, locker.ErrNotAcquired, "an acquire beside the holder after Break")
	t.OK(held.Release(t.Ctx), "Release of the holder after Break")
}

// pause waits for d, in fake time.
func pause(d time.Duration) { <-time.After(d) }
