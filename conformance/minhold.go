package conformance

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/conformance/internal/suite"
	"github.com/holdfast-go/holdfast/internal/faultproxy"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/locker/locktrace"
	"github.com/holdfast-go/holdfast/middleware/retry"
)

var minHoldCases = []testCase{
	{
		name: "a release before MinHold keeps the name taken", contract: minimumHold, on: suite.AllKinds, can: minHold,
		leaves: true,
		why:    "a job that is over at once must not run again on a replica whose clock is behind",
		run:    releaseKeepsName,
	},
	{
		name: "MinHold counts from the acquire", contract: minimumHold, on: suite.WithoutSentinel, can: minHold,
		leaves: true,
		why:    "counted from the release, it would reach into the next tick of the job",
		run:    minHoldCountsFromAcquire,
	},
	{
		name: "a lease lasts for MinHold", contract: minimumHold, on: suite.WithoutSentinel, can: minHold, leaves: true,
		why: "a holder that dies releases nothing: only its lease keeps the name taken",
		run: leaseLastsForMinHold,
	},
	{
		name: "a minimum hold outlives its process", contract: minimumHold, on: suite.OnlyMemory, can: minHold,
		leaves: true,
		why:    "a cron process ends after its job; the server must keep the name taken, and then free it",
		run:    minHoldOutlivesProcess,
	},
	{
		name: "a minimum hold belongs to nobody", contract: minimumHold, on: suite.WithoutSentinel, can: minHold,
		leaves: true,
		why:    "a renewal that runs behind the release would prolong it, and a second release would cut it short",
		run:    minHoldIsNobodys,
	},
	{
		name: "a release that keeps the name is resolved", contract: minimumHold, on: suite.OneAddress, can: minHold,
		leaves: true,
		why:    "when it is resent it finds its own work, or its hold: the name stays taken, and the release succeeded",
		run:    keepingReleaseIsResolved,
	},
	{
		name: "an acquire that was given up keeps no name", contract: minimumHold, on: suite.OneAddress, can: minHold,
		leaves: true,
		why:    "its job never ran: nothing must keep the next one from running",
		run:    givenUpAcquireKeepsNothing,
	},
	{
		name: "a resumed hold keeps its MinHold", contract: minimumHold, on: suite.WithoutSentinel, can: minHold,
		leaves: true,
		why:    "the process that finishes the job may be another than the one that began it",
		run:    resumedHoldKeepsMinHold,
	},
	{
		name: "a release by handle keeps the name taken", contract: minimumHold, on: suite.WithoutSentinel,
		can: minHold, leaves: true,
		why: "the process that ends the job may have its handle only",
		run: handleReleaseKeepsName,
	},
	{
		name: "a waiter acquires at the end of MinHold", contract: minimumHold, on: suite.OnlyMemory, can: minHold,
		leaves: true,
		why:    "no message is sent at that time: the waiter must know when it is, and not wait for the end of the lease",
		run:    waiterAcquiresAfterMinHold,
	},
	{
		name: "a minimum hold keeps its owner out", contract: minimumHold, on: suite.WithoutSentinel,
		can: func(c Capabilities) bool { return c.MinHold && c.Reentrant }, leaves: true,
		why: "the hold has ended for its owner too; but while another hold of that owner lasts, it can re-enter",
		run: minHoldKeepsOwnerOut,
	},
	{
		name: "the minimum hold of a reader keeps writers out", contract: minimumHold, on: suite.WithoutSentinel,
		can: func(c Capabilities) bool { return c.MinHold && c.Shared }, leaves: true,
		why: "what is left of a shared hold is shared: readers enter, writers do not",
		run: readersMinHold,
	},
	{
		name: "permits stay taken for MinHold", contract: minimumHold, on: suite.WithoutSentinel, permits: true,
		can: minHold, leaves: true,
		why: "as many jobs as there are permits run per tick, and the permits of others are not touched",
		run: permitsStayTaken,
	},
	{
		name: "a quorum keeps the name taken for MinHold", contract: minimumHold, on: suite.OneAddress, quorum: true,
		can: minHold, leaves: true,
		why: "each node must keep its part, for as long as the others do",
		run: quorumKeepsName,
	},
}

// minHold selects the strategies with Request.MinHold.
func minHold(c Capabilities) bool { return c.MinHold }

// kept demands that a name is refused for its released hold, for at most rest.
func (t *caseT) kept(l locker.Locker, req locker.Request, rest time.Duration) {
	t.Helper()
	ce := t.contended(l, locker.Request{Name: req.Name, Owner: req.Owner})
	if ce.Owner != req.Owner || ce.Note != req.Note || !ce.Released {
		t.Errorf("the refusal names owner %q, note %q, released: %v", ce.Owner, ce.Note, ce.Released)
	}
	if ce.Left <= 0 || ce.Left > rest || ce.RetryAfter <= 0 || ce.RetryAfter > rest {
		t.Errorf("the refusal says that %v are left, try again after %v: want at most %v", ce.Left, ce.RetryAfter, rest)
	}
}

func releaseKeepsName(t *caseT) {
	l, other := t.direct(), t.direct()
	for _, fenced := range []bool{false, true} {
		req := locker.Request{Name: t.Key(), TTL: long, MinHold: long / 2, Fenced: fenced, Owner: "worker 7",
			Note: "nightly"}
		began := time.Now()
		lock := t.acquire(l, req)
		ce := t.contended(other, locker.Request{Name: req.Name})
		if t.Left(ce.Left, long, began, "the lease, by the refusal"); ce.Released {
			t.Errorf("before the release the refusal says %v", ce)
		}
		t.OK(lock.Release(t.Ctx), "Release before MinHold")
		t.Is(lock.Err(), locker.ErrReleased, "Err after Release")
		t.Is(lock.Release(t.Ctx), locker.ErrReleased, "the second Release")
		t.kept(other, req, req.MinHold)
		t.kept(l, req, req.MinHold)
		t.Left(t.contended(other, locker.Request{Name: req.Name}).Left, req.MinHold, began, "the MinHold, by the refusal")
		state, err := locker.Inspect(t.Ctx, unwrap(l), req.Name)
		if errors.Is(err, errors.ErrUnsupported) {
			continue
		}
		t.OK(err, "Inspect")
		if !state.Held || state.Holds != 0 || state.Owner != req.Owner || !strings.HasPrefix(state.Note, req.Note) ||
			state.Left <= 0 || state.Left > req.MinHold {
			t.Errorf("Inspect of a name that is kept taken: %+v", state)
		}
	}
}

func minHoldCountsFromAcquire(t *caseT) {
	const rest, work = time.Minute, 300 * time.Millisecond
	l, other := t.direct(), t.direct()
	began := time.Now()
	lock := t.acquire(l, locker.Request{Name: t.Key(), TTL: long, MinHold: rest})
	acquired := time.Now()
	t.Pause(work)
	worked := time.Since(acquired)
	t.OK(lock.Release(t.Ctx), "Release before MinHold")
	left := t.PTTL(lock.Name())
	if most := rest - worked; left > most+2*time.Millisecond {
		t.Errorf("%v are left of a MinHold of %v after %v", left, rest, worked)
	}
	if least := rest - time.Since(began); left < least-2*time.Millisecond {
		t.Errorf("%v are left of a MinHold of %v after %v", left, rest, time.Since(began))
	}

	over := t.acquire(l, locker.Request{Name: t.Key(), TTL: long, MinHold: work})
	t.Pause(work)
	t.OK(over.Release(t.Ctx), "Release after MinHold")
	t.gone(over.Name(), "after a release when MinHold had passed")
	t.free(other, over.Name())
}

func leaseLastsForMinHold(t *caseT) {
	l := t.direct()
	const rest = 10 * time.Minute // more than a default
	began := time.Now()
	lock := t.acquire(l, locker.Request{Name: t.Key(), MinHold: rest})
	if lock.TTL() < rest {
		t.Errorf("a MinHold of %v has a TTL of %v", rest, lock.TTL())
	}
	t.Left(t.PTTL(lock.Name()), lock.TTL(), began, "the key of a lock with a MinHold")
	t.covers(lock)
	_, err := l.Acquire(t.Ctx, locker.Request{Name: t.Key(), TTL: long, MinHold: long + 1})
	t.Is(err, locker.ErrInvalid, "Acquire with a MinHold that is longer than the TTL")
}

func minHoldOutlivesProcess(t *caseT) {
	const rest = 1500 * time.Millisecond
	drv, other := t.Driver(), t.direct()
	l := t.locker(drv)
	began := time.Now()
	lock := t.acquire(l, locker.Request{Name: t.Key(), TTL: long, MinHold: rest})
	t.OK(lock.Release(t.Ctx), "Release before MinHold")
	t.OK(drv.Close(), "Close")
	t.Eventually("the name is free", func() bool {
		lock, err := other.Acquire(t.Ctx, locker.Request{Name: lock.Name(), TTL: long})
		if err == nil {
			t.OK(lock.Release(t.Ctx), "Release")
		}
		return err == nil
	})
	if took := time.Since(began); took < rest || took > rest+50*suite.PollEvery {
		t.Errorf("the name was free %v after the acquire, want %v", took, rest)
	}
}

func minHoldIsNobodys(t *caseT) {
	l, other := t.direct(), t.direct()
	req := locker.Request{Name: t.Key(), TTL: long, MinHold: long / 2}
	lock := t.acquire(l, req)
	req.Owner = lock.Owner()
	var inner lease.Lease
	lock.Hold().Wrap(func(l lease.Lease) lease.Lease {
		inner = l
		return l
	})
	handle := lock.Handle()
	t.OK(lock.Release(t.Ctx), "Release before MinHold")
	_, err := inner.Do(t.Ctx, lease.Op{Kind: lease.OpRenew, TTL: long})
	t.Is(err, locker.ErrNotHeld, "a renewal behind the release")
	_, err = inner.Do(t.Ctx, lease.Op{Kind: lease.OpRelease})
	t.Is(err, locker.ErrNotHeld, "another release")
	_, err = locker.Resume(t.Ctx, other, handle)
	if !errors.Is(err, errors.ErrUnsupported) {
		t.Is(err, locker.ErrNotHeld, "Resume behind the release")
	}
	ce := t.contended(other, locker.Request{Name: req.Name})
	if ce.Left <= 0 || ce.Left > req.MinHold {
		t.Errorf("%v are left of a MinHold of %v", ce.Left, req.MinHold)
	}
}

func keepingReleaseIsResolved(t *caseT) {
	other := t.direct()
	for what, fault := range t.noticed(faults) {
		p, l := t.behind()
		lock := t.acquire(l, locker.Request{Name: t.Key(), TTL: long, MinHold: long / 2})
		p.Fail(lock.Name(), fault)
		t.OK(t.Call("Release", func() error { return lock.Release(t.Ctx) }), "Release that is %s", what)
		if ce := t.contended(other, locker.Request{Name: lock.Name()}); !ce.Released || ce.Left > long/2 {
			t.Errorf("after a release that was %s: %v", what, ce)
		}
	}
}

func givenUpAcquireKeepsNothing(t *caseT) {
	p, l := t.behind()
	other := t.direct()
	req := locker.Request{Name: t.Key(), TTL: long, MinHold: long / 2}
	trap, err := t.unanswered(p, req.Name, faultproxy.Stall, "Acquire", func(ctx context.Context) error {
		_, err := l.Acquire(ctx, req)
		return err
	})
	t.Is(err, locker.ErrUnknownOutcome, "an acquire without an answer")
	trap.Release()
	t.freeSoon(other, locker.Request{Name: req.Name, TTL: long}, "the name is free")
}

func resumedHoldKeepsMinHold(t *caseT) {
	a, b := t.direct(), t.direct()
	req := locker.Request{Name: t.Key(), TTL: long, MinHold: long / 2, Owner: "worker 7", Note: "nightly"}
	handle, err := locker.ParseHandle(t.acquire(a, req).Handle().Encode())
	t.OK(err, "ParseHandle")
	resumed, err := locker.Resume(t.Ctx, b, handle)
	if errors.Is(err, errors.ErrUnsupported) {
		return
	}
	t.OK(err, "Resume")
	t.OK(resumed.Release(t.Ctx), "Release of a resumed lock before MinHold")
	t.kept(a, req, req.MinHold)
}

func waiterAcquiresAfterMinHold(t *caseT) {
	const rest = 1200 * time.Millisecond
	holder, l := t.direct(), t.waiting(t.direct(), retry.Config{})
	name := t.Key()
	began := time.Now()
	lock := t.acquire(holder, locker.Request{Name: name, TTL: long, MinHold: rest})
	acquired := t.waitAs(l, locker.Request{Name: name, TTL: long}, func(locktrace.WaitingInfo) bool { return true })
	t.OK(lock.Release(t.Ctx), "Release before MinHold")
	next := t.got(acquired, "at the end of MinHold")
	if took := time.Since(began); took < rest || took > rest+10*latency { // the server counts whole milliseconds
		t.Errorf("the waiter acquired %v after the holder, want %v", took, rest)
	}
	t.OK(next.Release(t.Ctx), "Release of the waiter")
}

func minHoldKeepsOwnerOut(t *caseT) {
	l, other := t.direct(), t.direct()
	req := locker.Request{Name: t.Key(), TTL: long, MinHold: long / 2, Owner: "worker 7"}
	outer := t.acquire(l, locker.Request{Name: req.Name, TTL: long, Owner: req.Owner})
	inner := t.acquire(l, req)
	t.OK(inner.Release(t.Ctx), "Release of the inner hold before MinHold")
	again := t.acquire(l, locker.Request{Name: req.Name, TTL: long, Owner: req.Owner})
	t.OK(again.Release(t.Ctx), "Release")
	if ce := t.contended(other, locker.Request{Name: req.Name}); ce.Released {
		t.Errorf("while the outer hold lasts: %v", ce)
	}
	t.OK(outer.Release(t.Ctx), "Release of the outer hold")
	t.kept(l, req, req.MinHold)
	t.kept(other, req, req.MinHold)
}

func readersMinHold(t *caseT) {
	l, other := t.direct(), t.direct()
	req := locker.Request{Name: t.Key(), Mode: locker.Shared, TTL: long, MinHold: long / 2, Owner: "worker 7"}
	beside := t.acquire(other, locker.Request{Name: req.Name, Mode: locker.Shared, TTL: long})
	first := t.acquire(l, req)
	t.OK(first.Release(t.Ctx), "Release of a reader before MinHold")
	t.OK(beside.Release(t.Ctx), "Release of the reader beside it")
	second := t.acquire(other, locker.Request{Name: req.Name, Mode: locker.Shared, TTL: long})
	t.contended(other, locker.Request{Name: req.Name, NoWait: true})
	keeps := func(what string, err error) {
		t.Helper()
		ce, ok := errors.AsType[*locker.ContentionError](err)
		if !ok || ce.Left <= 0 || ce.Left > req.MinHold || ce.Owner != req.Owner || !ce.Released {
			t.Errorf("%s is refused by %v", what, err)
		}
	}
	if t.h.Can.Convert {
		keeps("the upgrade of another reader", second.Upgrade(t.Ctx))
	}
	t.OK(second.Release(t.Ctx), "Release of another reader")
	keeps("a writer", t.contended(other, locker.Request{Name: req.Name, NoWait: true}))
}

func permitsStayTaken(t *caseT) {
	l, other, name := t.semaphore(t.Driver(), 4), t.semaphore(t.Driver(), 4), t.Key()
	lock := t.acquire(l, locker.Request{Name: name, TTL: long, MinHold: long / 2, Permits: 2})
	beside := t.permits(other, name, 1)
	t.OK(lock.Release(t.Ctx), "Release of two permits before MinHold")
	t.noPermits(other, name, 2)
	last := t.permits(other, name, 1)
	t.noPermits(l, name, 1)
	t.OK(beside.Release(t.Ctx), "Release of a permit")
	t.OK(last.Release(t.Ctx), "Release of a permit")
	ce := t.contended(other, locker.Request{Name: name, Permits: 3, NoWait: true})
	if !ce.Released || ce.Left <= 0 || ce.Left > long/2 {
		t.Errorf("the refusal is %+v, want that the holder has released, and at most its MinHold", ce)
	}
	state, err := locker.Inspect(t.Ctx, unwrap(l), name)
	t.OK(err, "Inspect")
	if !state.Held || state.Holds != 0 || state.Free != 2 {
		t.Errorf("the state is %+v, want no hold, and 2 of 4 permits free", state)
	}
	t.OK(t.permits(l, name, 2).Release(t.Ctx), "Release of the free permits")
}

func quorumKeepsName(t *caseT) {
	l, other := t.quorum(), t.quorum()
	req := locker.Request{Name: t.Key(), TTL: long, MinHold: long / 2, Owner: "worker 7"}
	lock := t.acquire(l, req)
	t.OK(lock.Release(t.Ctx), "Release before MinHold")
	t.Eventually("all nodes say what is left of MinHold", func() bool { // some may not have released yet
		ce := t.contended(other, locker.Request{Name: req.Name})
		return ce.Released && ce.Owner == req.Owner && ce.Left > 0 && ce.Left <= req.MinHold
	})
}

func handleReleaseKeepsName(t *caseT) {
	a, b := t.direct(), t.direct()
	lock := t.acquire(a, locker.Request{Name: t.Key(), TTL: long, MinHold: long / 2})
	t.OK(lock.Handle().Release(t.Ctx, b), "Handle.Release")
	if held := t.contended(b, locker.Request{Name: lock.Name()}); !held.Released || held.Left > long/2 {
		t.Errorf("the refusal is %+v, want that the holder has released, and at most its MinHold", held)
	}
	t.Is(lock.Renew(t.Ctx, 0), locker.ErrLost, "Renew after Handle.Release")
	t.Is(lock.Handle().Release(t.Ctx, b), locker.ErrNotHeld, "a second Handle.Release")
	t.contended(b, locker.Request{Name: lock.Name()})
}
