package conformance

import (
	"context"
	"runtime"
	"time"

	"github.com/holdfast-go/holdfast/conformance/internal/suite"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/locker/locktrace"
	"github.com/holdfast-go/holdfast/middleware/retry"
)

var misuseCases = []testCase{
	{
		name: "a call chain does not wait for itself", contract: 13, on: suite.AllKinds, can: notReentrant,
		why: "a function that acquires a lock that its caller holds would wait until its ctx ends, and keep the lock meanwhile",
		run: chainDoesNotWaitForItself,
	},
	{
		name: "only a hold of its own stops a call chain", contract: 13, on: suite.WithoutSentinel, can: notReentrant,
		why: "an acquire that waits for another holder, or comes after its own release, must not be refused",
		run: chainWaitsForOthers,
	},
	{
		name: "a forgotten lock is found out", contract: 10, on: suite.WithoutSentinel,
		why: "a lock that nobody can release would be renewed for as long as the process lives",
		run: forgottenIsFoundOut,
	},
}

// chainDoesNotWaitForItself acquires a name under the ctx of a hold of it.
func chainDoesNotWaitForItself(t *caseT) {
	l, req := t.waiting(t.direct(), retry.Config{}), locker.Request{Name: t.Key(), TTL: long, MaxWait: t.Limit}
	behind := make(chan (<-chan *locker.Lock), 1)
	t.OK(locker.Do(t.Ctx, l, req, func(ctx context.Context, lock *locker.Lock) error {
		for _, noWait := range []bool{false, true} {
			nested := req
			if nested.NoWait = noWait; noWait {
				nested.MaxWait = 0
			}
			_, err := l.Acquire(ctx, nested)
			t.isNested(err, "an acquire under the ctx of a hold")
		}
		behind <- t.wait(l, locker.Request{Name: req.Name, TTL: long})
		_, err := l.Acquire(ctx, req)
		t.isNested(err, "the same while others wait")
		ran, err := locker.Try(ctx, l, req, func(context.Context, *locker.Lock) error { return nil })
		t.OK(err, "Try under the ctx of a hold")
		if ran {
			t.Errorf("Try under the ctx of a hold ran")
		}
		t.held(lock)
		return nil
	}), "Do")
	t.OK(t.got(<-behind, "after the release").Release(t.Ctx), "Release by the waiter")
	t.gone(req.Name, "after the releases")
}

// isNested demands ErrNested: the caller's call chain holds the lock.
func (t *caseT) isNested(err error, what string) {
	t.Helper()
	t.Is(err, locker.ErrNested, "%s", what)
	t.Is(err, locker.ErrNotAcquired, "%s", what)
	t.isNot(err, locker.ErrMaxWait, "%s", what)
	t.isNot(err, locker.ErrUnknownOutcome, "%s", what)
}

// chainWaitsForOthers acquires under a ctx with a hold of another Locker, or with an ended hold.
func chainWaitsForOthers(t *caseT) {
	l, elsewhere, name := t.waiting(t.direct(), retry.Config{}), t.waiting(t.direct(), retry.Config{}), t.Key()
	held := t.acquire(l, locker.Request{Name: name, TTL: long})
	ctx, cancel := held.Context(t.Ctx)
	defer cancel()
	_, err := elsewhere.Acquire(ctx, locker.Request{Name: name, TTL: long, NoWait: true})
	t.Is(err, locker.ErrNotAcquired, "an acquire through another Locker")
	t.isNot(err, locker.ErrNested, "an acquire through another Locker")
	other, err := l.Acquire(ctx, locker.Request{Name: t.Key(), TTL: long})
	t.OK(err, "Acquire of another name")
	t.OK(other.Release(ctx), "Release of another name")
	t.OK(held.Release(t.Ctx), "Release")
	holder := t.acquire(elsewhere, locker.Request{Name: name, TTL: long})
	got := t.waitUnder(context.WithoutCancel(ctx), l, locker.Request{Name: name, TTL: long},
		func(locktrace.WaitingInfo) bool { return true })
	t.OK(holder.Release(t.Ctx), "Release by another process")
	t.OK(t.got(got, "under the ctx of a hold that has ended").Release(t.Ctx), "Release by the waiter")
}

// forgottenIsFoundOut drops a Lock unreleased, and keeps another one.
func forgottenIsFoundOut(t *caseT) {
	l := t.direct()
	kept := t.acquire(l, locker.Request{Name: t.Key(), TTL: long})
	ctx, cancel := kept.Context(t.Ctx)
	defer cancel()
	dropped := t.drop(l, t.Key())
	if dropped.Forgotten() || kept.Hold().Forgotten() {
		t.Errorf("a lock is reported as forgotten by the first call")
	}
	pause := 100 * time.Millisecond
	t.Eventually("the lock that was dropped is reported as forgotten", func() bool {
		runtime.GC() // beside busy goroutines one takes seconds, even in fake time
		if dropped.Forgotten() {
			return true
		}
		t.Pause(pause)
		pause *= 2
		return false
	})
	if kept.Hold().Forgotten() || ctx.Err() != nil {
		t.Errorf("a lock that is in use is reported as forgotten")
	}
	_, err := dropped.Lease().Do(t.Ctx, lease.Op{Kind: lease.OpRelease})
	t.OK(err, "the release of a lock that nobody has")
	t.OK(kept.Release(t.Ctx), "Release")
}

// drop acquires a lock, and returns its Hold alone.
//
//go:noinline
func (t *caseT) drop(l locker.Locker, name string) lease.Hold {
	t.Helper()
	lock, err := l.Acquire(t.Ctx, locker.Request{Name: name, TTL: long})
	t.OK(err, "Acquire")
	return lock.Hold()
}
