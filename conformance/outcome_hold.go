package conformance

import (
	"context"

	"github.com/holdfast-go/holdfast/conformance/internal/suite"
	"github.com/holdfast-go/holdfast/internal/faultproxy"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
)

var holdOutcomeCases = []testCase{
	{
		name: "a refused renewal changes nothing", contract: 6, on: suite.OnlyMemory, own: true,
		why: "LOADING or READONLY says nothing about the hold, which may still be renewed before its Deadline",
		run: refusedRenewChangesNothing,
	},
	{
		name: "a renewal whose reply is lost succeeds", contract: 9, on: suite.OneAddress,
		why: "a renewal can be resent as it is; one lost packet must not cost the lock",
		run: lostRenewSucceeds,
	},
	{
		name: "a renewal of unknown outcome changes nothing", contract: 9, on: suite.OneAddress,
		why: "the lease may or may not be longer: only the old Deadline is safe",
		run: unknownRenewChangesNothing,
	},
	{
		name: "scripts may be flushed while a lock is held", contract: 7, on: suite.WithoutSentinel, own: true,
		why: "after SCRIPT FLUSH renewals and releases must go on as before",
		run: scriptsFlushedMidHold,
	},
	{
		name: "connections may be killed while a lock is held", contract: 7, on: suite.OnlySingle, own: true,
		why: "a hold lives at the server, not in a connection",
		run: connectionsKilledMidHold,
	},
	{
		name: "a server that restarts empty loses its locks", contract: 9, on: suite.OnlySingle, own: true,
		why: "the holder must learn of it and restore nothing, and the tokens must not start at one again",
		run: emptyRestartLoses,
	},
	{
		name: "a server that restarts with its data keeps its locks", contract: 9, on: suite.OnlySingle, own: true,
		why: "with an append-only file a restart is an outage, not a loss",
		run: restartWithDataKeeps,
	},
}

func refusedRenewChangesNothing(t *caseT) {
	p, l := t.behind()
	lock := t.acquire(l, locker.Request{Name: t.Key(), TTL: long})
	before := lock.Deadline()
	for _, text := range []string{"READONLY You can't write against a read only replica.",
		"LOADING Redis is loading the dataset in memory"} {
		code := (&driver.ServerError{Text: text}).Code()
		sent := p.Sent(lock.Name())
		t.Server.Mini.SetError(text)
		err := lock.Renew(t.Ctx, 2*long)
		t.Server.Mini.SetError("")
		if driver.CodeOf(err) != code {
			t.Errorf("Renew on %s: %v, want the server's error", code, err)
		}
		t.isNot(err, locker.ErrNotHeld, "Renew on %s", code)
		t.isNot(err, locker.ErrUnknownOutcome, "Renew on %s", code)
		if n := p.Sent(lock.Name()) - sent; n != 1 {
			t.Errorf("Renew on %s: sent %d times, want once", code, n)
		}
		t.held(lock)
		if !lock.Deadline().Equal(before) {
			t.Errorf("a refused renewal moved the Deadline by %v", lock.Deadline().Sub(before))
		}
	}
	t.OK(lock.Renew(t.Ctx, 2*long), "the next Renew")
	t.covers(lock)
	t.OK(lock.Release(t.Ctx), "Release")
}

func lostRenewSucceeds(t *caseT) {
	for what, fault := range t.noticed(faults) {
		p, l := t.behind()
		lock := t.acquire(l, locker.Request{Name: t.Key(), TTL: faulty})
		before := lock.Deadline()
		trap := p.Fail(lock.Name(), fault)
		err := t.Call("Renew", func() error { return lock.Renew(t.Ctx, long) })
		t.Event(trap.Hit(), "the fault happens")
		t.OK(err, "Renew whose reply is %s", what)
		if !lock.Deadline().After(before) {
			t.Errorf("%s: Renew succeeded, and the Deadline is as before", what)
		}
		t.held(lock)
		t.covers(lock)
		t.OK(lock.Release(t.Ctx), "Release")
	}
}

func unknownRenewChangesNothing(t *caseT) {
	p, l := t.behind()
	lock := t.acquire(l, locker.Request{Name: t.Key(), TTL: long})
	before := lock.Deadline()
	trap, err := t.unanswered(p, lock.Name(), faultproxy.StallRequest, "Renew",
		func(ctx context.Context) error { return lock.Renew(ctx, 2*long) })
	t.Is(err, locker.ErrUnknownOutcome, "Renew without an answer")
	t.Is(err, context.Canceled, "Renew without an answer")
	t.isNot(err, locker.ErrNotHeld, "Renew without an answer")
	if !lock.Deadline().Equal(before) {
		t.Errorf("a renewal of unknown outcome moved the Deadline by %v", lock.Deadline().Sub(before))
	}
	t.held(lock)
	trap.Release()
	t.OK(lock.Renew(t.Ctx, 2*long), "the next Renew")
	t.covers(lock)
	t.OK(lock.Release(t.Ctx), "Release")
}

func scriptsFlushedMidHold(t *caseT) {
	l := t.direct()
	for _, fenced := range []bool{false, true} {
		flush := func() { t.OK(t.Server.EveryNode(t.Ctx, "SCRIPT", "FLUSH"), "SCRIPT FLUSH") }
		flush()
		lock := t.acquire(l, locker.Request{Name: t.Key(), TTL: long, Fenced: fenced})
		flush()
		t.OK(lock.Renew(t.Ctx, 0), "Renew after SCRIPT FLUSH")
		flush()
		t.contended(l, locker.Request{Name: lock.Name()})
		flush()
		t.OK(lock.Release(t.Ctx), "Release after SCRIPT FLUSH")
		t.gone(lock.Name(), "after Release")
	}
}

func connectionsKilledMidHold(t *caseT) {
	l := t.direct()
	t.warmLocker(l)
	lock := t.acquire(l, locker.Request{Name: t.Key(), TTL: long, Fenced: true})
	for range 3 {
		t.Do("", "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
		t.OK(lock.Renew(t.Ctx, 0), "Renew after CLIENT KILL")
		t.Do("", "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
		other := t.acquire(l, locker.Request{Name: t.Key(), TTL: long})
		t.Do("", "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
		t.OK(other.Release(t.Ctx), "Release after CLIENT KILL")
	}
	t.covers(lock)
	t.OK(lock.Release(t.Ctx), "Release")
}

func emptyRestartLoses(t *caseT) {
	l := t.direct()
	renews := t.acquire(l, locker.Request{Name: t.Key(), TTL: long, Fenced: true})
	releases := t.acquire(l, locker.Request{Name: t.Key(), TTL: long})
	t.OK(t.Server.Real.RestartEmpty(t.Ctx), "restart the server")
	t.Is(renews.Renew(t.Ctx, 0), locker.ErrLost, "Renew after a restart without data")
	t.lost(renews)
	if t.Exists(renews.Name()) {
		t.Errorf("a renewal brought back a lock that was lost in a restart")
	}
	if err := releases.Release(t.Ctx); err != nil { // its first send used a dead connection, and may have been executed
		t.Is(err, locker.ErrLost, "Release after a restart without data")
	}
	t.tenure(l, renews.Name(), renews.Fence())
	t.free(l, releases.Name())
}

func restartWithDataKeeps(t *caseT) {
	srv := suite.StartReal(t.TB, redistest.Options{Args: []string{"--appendonly", "yes", "--appendfsync", "always"}})
	t.Server = srv
	l := t.direct()
	lock := t.acquire(l, locker.Request{Name: t.Key(), TTL: long, Fenced: true})
	t.OK(srv.Real.Restart(t.Ctx), "restart the server")
	t.OK(lock.Renew(t.Ctx, 0), "Renew after a restart with data")
	t.covers(lock)
	t.contended(l, locker.Request{Name: lock.Name()})
	t.OK(lock.Release(t.Ctx), "Release")
	next := t.acquire(l, locker.Request{Name: lock.Name(), TTL: long, Fenced: true})
	if next.Fence() <= lock.Fence() {
		t.Errorf("the fencing token went from %d to %d over a restart", lock.Fence(), next.Fence())
	}
	t.OK(next.Release(t.Ctx), "Release")
}
