package conformance

import (
	"context"
	"errors"
	"sync/atomic"
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
		name: "a waiter for a hand-over learns the changed note", contract: 13, on: suite.OnlyMemory, can: handsOver,
		why: "the process knows its holder and asks nobody: it would go on to name what the holder did long ago",
		run: waiterLearnsNote,
	},
	{
		name: "Break ends hand-overs", contract: 7, on: suite.OnlyMemory, can: handsOver,
		why: "a hold that the server no longer has must not be handed on for as long as the tenure lasts",
		run: breakEndsHandOvers,
	},
}

// handOverIsAHold passes a lock along three waiters of one process. A strategy without hand-over
// must behave in the same way.
func handOverIsAHold(t *caseT) {
	const waiters = 3
	l, name := t.handingOver(t.direct()), t.Key()
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
	l, req := t.handingOver(t.direct()), locker.Request{Name: t.Key(), TTL: long}
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

// waiterLearnsNote changes the note of a lock, and lets a request of the same process give up.
func waiterLearnsNote(t *caseT) {
	l, name := t.handingOver(t.direct()), t.Key()
	held := t.acquire(l, locker.Request{Name: name, TTL: long, Note: "step 1"})
	if t.setsNote(held, "step 2") {
		_, err := l.Acquire(t.Ctx, locker.Request{Name: name, TTL: long, MaxWait: 300 * time.Millisecond})
		t.Is(err, locker.ErrMaxWait, "a waiter of the same process")
		var ce *locker.ContentionError
		if !errors.As(err, &ce) || !sameNote(ce.Note, "step 2") {
			t.Errorf("%v does not name the note", err)
		}
	}
	t.OK(held.Release(t.Ctx), "Release")
}

// breakEndsHandOvers hands a lock to and fro between two requests, and ends the hold meanwhile: within 50
// ms one of them acquires at the server.
func breakEndsHandOvers(t *caseT) {
	const most = 50 * time.Millisecond
	l, req := t.handingOver(t.direct()), locker.Request{Name: t.Key(), TTL: long}
	ctx, cancel := context.WithCancel(t.Ctx)
	defer cancel()
	acquired := make(chan struct{}, 1) // the first acquire after Break without a hand-over
	var broken atomic.Bool
	use := func() error {
		for ctx.Err() == nil {
			handed := false
			lock, err := l.Acquire(locktrace.With(t.Ctx, &locktrace.Trace{Woken: func(_ context.Context, info locktrace.WokenInfo) {
				handed = info.By == locktrace.ByHandOver
			}}), req)
			if err != nil {
				return err
			}
			if broken.Load() && !handed {
				select {
				case acquired <- struct{}{}:
				default:
				}
			}
			pause(5 * time.Millisecond)
			if err := lock.Release(t.Ctx); err != nil && !errors.Is(err, locker.ErrLost) {
				return err
			}
		}
		return nil
	}
	users := []<-chan error{suite.Background(use), suite.Background(use)}
	pause(100 * time.Millisecond)
	began := time.Now()
	broken.Store(true)
	if _, ok := t.breaks(t.direct(), req.Name); ok {
		t.Event(acquired, "an acquire at the server after Break")
		if took := time.Since(began); took > most {
			t.Errorf("the hold is handed over for %v after Break", took)
		}
	}
	cancel()
	for _, user := range users {
		t.OK(t.Result(user, "the end of the work"), "the work")
	}
}

// pause waits for d, in fake time.
func pause(d time.Duration) { <-time.After(d) }
