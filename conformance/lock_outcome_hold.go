package conformance

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/holdfast-go/holdfast/internal/faultproxy"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
)

var holdOutcomeCases = []testCase{
	{
		name: "a release whose reply is lost succeeds", contract: 7, on: proxied,
		why: "repeated, it finds nothing: that is its own success, not a loss of the lock",
		run: lostReleaseSucceeds,
	},
	{
		name: "a release that never arrived succeeds", contract: 7, on: proxied,
		why: "given up after one send it would leave the lock taken for a TTL",
		run: cutReleaseSucceeds,
	},
	{
		name: "a release is final", contract: 7, on: everywhere,
		why: "of two releases one must act, and the other say so and send nothing that could hit the next holder",
		run: releaseIsFinal,
	},
	{
		name: "a cancelled context does not stop a release", contract: 7, on: anywhere,
		why: "work that is cancelled must still give its lock back",
		run: cancelledReleaseReleases,
	},
	{
		name: "a release after the loss is still sent", contract: 7, on: everywhere,
		why: "a lock that we take for lost may still have its key, which then blocks everybody for the rest of the lease",
		run: releaseAfterLossIsSent,
	},
	{
		name: "a release from a frozen server is bounded", contract: 7, on: proxied,
		why: "who gives up a lock must not hang; the outcome is unknown, which is not a loss",
		run: frozenReleaseIsBounded,
	},
	{
		name: "a release of unknown outcome is seen through", contract: 7, on: proxied,
		why: "the key must not stay until its TTL only because one answer did not come",
		run: unknownReleaseIsSeenThrough,
	},
	{
		name: "a refused release is seen through", contract: 7, on: miniOne, own: true,
		why: "a server that is read-only for a moment must not keep the lock until its TTL",
		run: refusedReleaseIsSeenThrough,
	},
	{
		name: "a refused renewal changes nothing", contract: 6, on: miniOne, own: true,
		why: "LOADING or READONLY says nothing about the hold, which may still be renewed before its Deadline",
		run: refusedRenewChangesNothing,
	},
	{
		name: "a renewal whose reply is lost succeeds", contract: 9, on: proxied,
		why: "it may be repeated as it is; a lock given up for one lost packet helps nobody",
		run: lostRenewSucceeds,
	},
	{
		name: "a renewal of unknown outcome changes nothing", contract: 9, on: proxied,
		why: "the lease may or may not be longer: the old Deadline is the one that is safe",
		run: unknownRenewChangesNothing,
	},
	{
		name: "scripts may be flushed while a lock is held", contract: 7, on: everywhere, own: true,
		why: "after SCRIPT FLUSH renewals and releases must go on as before",
		run: scriptsFlushedMidHold,
	},
	{
		name: "connections may be killed while a lock is held", contract: 7, on: realOne, own: true,
		why: "a hold lives at the server, not in a connection",
		run: connectionsKilledMidHold,
	},
	{
		name: "a server that restarts empty loses its locks", contract: 9, on: realOne, own: true,
		why: "the holder must hear of it, and must not bring the lock back under somebody else",
		run: emptyRestartLoses,
	},
	{
		name: "a server that restarts with its data keeps its locks", contract: 9, on: realOne, own: true,
		why: "with an append-only file a restart is an outage and no loss",
		run: restartWithDataKeeps,
	},
}

// faults are all that may happen to one command.
var faults = map[string]faultproxy.Fault{
	"dropped": faultproxy.DropReply, "cut off": faultproxy.Cut, "withheld": faultproxy.Stall, "cut before": faultproxy.CutBefore,
}

// releaseTries is how often a release may take longer than it is repeated for, so that its outcome
// is unknown in truth: a strategy need not wait for much more than one answer that is lost, and a
// busy machine may be slow with the next.
const releaseTries = 3

// resolved releases what acquire gives until the outcome is known, releaseTries times at most.
func (t *caseT) resolved(ctx context.Context, acquire func() *locker.Lock) (lock *locker.Lock, err error) {
	t.Helper()
	for range releaseTries {
		lock = acquire()
		err = t.result(background(func() error { return lock.Release(ctx) }), "Release")
		if !errors.Is(err, locker.ErrUnknownOutcome) {
			break
		}
	}
	return lock, err
}

func lostReleaseSucceeds(t *caseT) {
	for what, fault := range answerLost {
		p, l := t.behind()
		var trap *faultproxy.Trap
		lock, err := t.resolved(t.ctx, func() *locker.Lock {
			lock := t.acquire(l, locker.Request{Name: t.key(), TTL: faulty})
			trap = p.Add(faultproxy.Rule{Match: faultproxy.Contains(lock.Name()), Fault: fault})
			return lock
		})
		t.event(trap.Hit(), "the fault happens")
		t.ok(err, "Release whose reply is %s", what)
		if t.exists(lock.Name()) {
			t.Errorf("%s: the key is still there after Release", what)
		}
	}
}

func cutReleaseSucceeds(t *caseT) {
	for _, fenced := range []bool{false, true} {
		p, l := t.behind()
		var trap *faultproxy.Trap
		lock, err := t.resolved(t.ctx, func() *locker.Lock {
			lock := t.acquire(l, locker.Request{Name: t.key(), TTL: long, Fenced: fenced})
			trap = p.Add(faultproxy.Rule{Match: faultproxy.Contains(lock.Name()), Fault: faultproxy.CutBefore})
			return lock
		})
		t.event(trap.Hit(), "the fault happens")
		t.ok(err, "Release that never arrived")
		if t.exists(lock.Name()) {
			t.Errorf("the key is still there after Release")
		}
	}
}

func releaseIsFinal(t *caseT) {
	l := t.direct()
	lock := t.acquire(l, locker.Request{Name: t.key(), TTL: long})
	t.ok(lock.Release(t.ctx), "Release")
	next := t.acquire(l, locker.Request{Name: lock.Name(), TTL: long})
	t.is(lock.Release(t.ctx), locker.ErrReleased, "the second Release")
	t.is(lock.Renew(t.ctx, 0), locker.ErrReleased, "Renew after Release")
	t.is(lock.Err(), locker.ErrReleased, "Err after Release")
	t.isNot(lock.Err(), locker.ErrLost, "Err after Release")
	t.contended(l, locker.Request{Name: lock.Name()})
	t.ok(next.Release(t.ctx), "Release of the next holder")

	for range 10 {
		lock := t.acquire(l, locker.Request{Name: t.key(), TTL: long})
		var wg sync.WaitGroup
		var released atomic.Int32
		for range 4 {
			wg.Go(func() {
				switch err := lock.Release(t.ctx); {
				case err == nil:
					released.Add(1)
				case !errors.Is(err, locker.ErrReleased):
					t.Errorf("Release by several goroutines: %v", err)
				}
			})
		}
		wg.Wait()
		if n := released.Load(); n != 1 {
			t.Errorf("%d of 4 releases at once succeeded, want 1", n)
		}
	}
}

func cancelledReleaseReleases(t *caseT) {
	l := t.direct()
	for _, fenced := range []bool{false, true} {
		lock, err := t.resolved(t.canceled(), func() *locker.Lock {
			return t.acquire(l, locker.Request{Name: t.key(), TTL: long, Fenced: fenced})
		})
		t.ok(err, "Release with a cancelled context")
		if t.exists(lock.Name()) {
			t.Errorf("the key is still there after Release with a cancelled context")
		}
	}
}

func releaseAfterLossIsSent(t *caseT) {
	l := t.direct()
	cause := errors.New("the network said so")
	lock := t.acquire(l, locker.Request{Name: t.key(), TTL: long})
	lock.Hold().MarkLost(cause)
	t.lost(lock)
	t.is(lock.Err(), cause, "Err of a lock marked as lost")
	err := lock.Release(t.ctx)
	t.is(err, locker.ErrLost, "Release after the loss")
	t.is(err, cause, "Release after the loss")
	if t.exists(lock.Name()) {
		t.Errorf("the key is still there after Release of a lock that was taken for lost")
	}
	t.is(lock.Release(t.ctx), locker.ErrReleased, "the second Release")
}

func frozenReleaseIsBounded(t *caseT) {
	p, l := t.behind()
	lock := t.acquire(l, locker.Request{Name: t.key(), TTL: faulty})
	p.Freeze()
	released := background(func() error { return lock.Release(t.canceled()) })
	err := t.result(released, "Release from a frozen server")
	p.Thaw()
	t.is(err, locker.ErrUnknownOutcome, "Release from a frozen server")
	t.isNot(err, locker.ErrLost, "Release from a frozen server")
	t.isNot(err, locker.ErrNotHeld, "Release from a frozen server")
	t.is(lock.Err(), locker.ErrReleased, "Err after Release")
	t.is(lock.Release(t.ctx), locker.ErrReleased, "the second Release")
}

func unknownReleaseIsSeenThrough(t *caseT) {
	p, l := t.behind()
	lock := t.acquire(l, locker.Request{Name: t.key(), TTL: long})
	p.Add(faultproxy.Rule{Match: faultproxy.Contains(lock.Name()), Fault: faultproxy.CutBefore})
	err := t.result(background(func() error { return lock.Release(t.canceled()) }), "Release")
	if err != nil { // one send is all that a cancelled context allows
		t.is(err, locker.ErrUnknownOutcome, "Release that never arrived")
		t.isNot(err, locker.ErrNotHeld, "Release that never arrived")
	}
	t.eventually("the key is removed", func() bool { return !t.exists(lock.Name()) })
}

func refusedReleaseIsSeenThrough(t *caseT) {
	_, l := t.behind()
	for _, text := range []string{"READONLY You can't write against a read only replica.", "ERR something that nobody has heard of"} {
		lock := t.acquire(l, locker.Request{Name: t.key(), TTL: long})
		t.srv.mini.SetError(text)
		err := t.result(background(func() error { return lock.Release(t.canceled()) }), "Release")
		t.srv.mini.SetError("")
		if err == nil {
			t.Errorf("Release that was answered %q succeeded", text)
		}
		t.isNot(err, locker.ErrNotHeld, "Release that was answered %q", text)
		t.is(lock.Err(), locker.ErrReleased, "Err after Release")
		t.eventually("the key is removed", func() bool { return !t.exists(lock.Name()) })
	}
}

func refusedRenewChangesNothing(t *caseT) {
	p, l := t.behind()
	lock := t.acquire(l, locker.Request{Name: t.key(), TTL: long})
	before := lock.Deadline()
	for _, text := range []string{"READONLY You can't write against a read only replica.", "LOADING Redis is loading the dataset in memory"} {
		code := (&driver.ServerError{Text: text}).Code()
		t.eventually("one send of a renewal is answered "+code, func() bool {
			sent := p.Count(faultproxy.Contains(lock.Name()))
			ctx, cancel := context.WithTimeout(t.ctx, 2*attemptTimeout)
			defer cancel()
			t.srv.mini.SetError(text)
			err := t.result(background(func() error { return lock.Renew(ctx, 2*long) }), "Renew")
			t.srv.mini.SetError("")
			t.isNot(err, locker.ErrNotHeld, "Renew on %s", code)
			resent := p.Count(faultproxy.Contains(lock.Name()))-sent > 1
			if err != nil && (ctx.Err() != nil || resent && errors.Is(err, locker.ErrUnknownOutcome)) {
				return false // a busy machine answered the first send too late
			}
			if driver.CodeOf(err) != code {
				t.Errorf("Renew on %s: %v, want the server's error", code, err)
			}
			t.isNot(err, locker.ErrUnknownOutcome, "Renew on %s", code)
			return true
		})
		t.held(lock)
		if !lock.Deadline().Equal(before) {
			t.Errorf("a refused renewal moved the Deadline by %v", lock.Deadline().Sub(before))
		}
	}
	t.ok(lock.Renew(t.ctx, 2*long), "the next Renew")
	t.covers(lock)
	t.ok(lock.Release(t.ctx), "Release")
}

func lostRenewSucceeds(t *caseT) {
	for what, fault := range faults {
		p, l := t.behind()
		lock := t.acquire(l, locker.Request{Name: t.key(), TTL: faulty})
		before := lock.Deadline()
		trap := p.Add(faultproxy.Rule{Match: faultproxy.Contains(lock.Name()), Fault: fault})
		err := t.result(background(func() error { return lock.Renew(t.ctx, long) }), "Renew")
		t.event(trap.Hit(), "the fault happens")
		t.ok(err, "Renew whose reply is %s", what)
		if !lock.Deadline().After(before) {
			t.Errorf("%s: Renew succeeded, and the Deadline is as before", what)
		}
		t.held(lock)
		t.covers(lock)
		t.ok(lock.Release(t.ctx), "Release")
	}
}

func unknownRenewChangesNothing(t *caseT) {
	p, l := t.behind()
	lock := t.acquire(l, locker.Request{Name: t.key(), TTL: long})
	before := lock.Deadline()
	p.Freeze()
	err := t.unanswered("Renew from a frozen server", func(ctx context.Context) error { return lock.Renew(ctx, 2*long) })
	t.is(err, locker.ErrUnknownOutcome, "Renew from a frozen server")
	t.is(err, context.DeadlineExceeded, "Renew from a frozen server")
	t.isNot(err, locker.ErrNotHeld, "Renew from a frozen server")
	if !lock.Deadline().Equal(before) {
		t.Errorf("a renewal of unknown outcome moved the Deadline by %v", lock.Deadline().Sub(before))
	}
	t.held(lock)
	p.Thaw()
	t.ok(lock.Renew(t.ctx, 2*long), "the next Renew")
	t.covers(lock)
	t.ok(lock.Release(t.ctx), "Release")
}

func scriptsFlushedMidHold(t *caseT) {
	l := t.direct()
	for _, fenced := range []bool{false, true} {
		flush := func() { t.ok(t.srv.everyNode(t.ctx, "SCRIPT", "FLUSH"), "SCRIPT FLUSH") }
		flush()
		lock := t.acquire(l, locker.Request{Name: t.key(), TTL: long, Fenced: fenced})
		flush()
		t.ok(lock.Renew(t.ctx, 0), "Renew after SCRIPT FLUSH")
		flush()
		t.contended(l, locker.Request{Name: lock.Name()})
		flush()
		t.ok(lock.Release(t.ctx), "Release after SCRIPT FLUSH")
		if t.exists(lock.Name()) {
			t.Errorf("the key is still there after Release")
		}
	}
}

func connectionsKilledMidHold(t *caseT) {
	l := t.direct()
	t.warmLocker(l)
	lock := t.acquire(l, locker.Request{Name: t.key(), TTL: long, Fenced: true})
	for range 3 {
		t.do("", "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
		t.ok(lock.Renew(t.ctx, 0), "Renew after CLIENT KILL")
		t.do("", "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
		other := t.acquire(l, locker.Request{Name: t.key(), TTL: long})
		t.do("", "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
		t.ok(other.Release(t.ctx), "Release after CLIENT KILL")
	}
	t.covers(lock)
	t.ok(lock.Release(t.ctx), "Release")
}

func emptyRestartLoses(t *caseT) {
	l := t.direct()
	renews := t.acquire(l, locker.Request{Name: t.key(), TTL: long})
	releases := t.acquire(l, locker.Request{Name: t.key(), TTL: long})
	t.ok(t.srv.real.RestartEmpty(t.ctx), "restart the server")
	t.is(renews.Renew(t.ctx, 0), locker.ErrLost, "Renew after a restart without data")
	t.lost(renews)
	if t.exists(renews.Name()) {
		t.Errorf("a renewal brought back a lock that was lost in a restart")
	}
	if err := releases.Release(t.ctx); err != nil { // its first send met a dead connection, and may have acted
		t.is(err, locker.ErrLost, "Release after a restart without data")
	}
	t.free(l, renews.Name())
	t.free(l, releases.Name())
}

func restartWithDataKeeps(t *caseT) {
	srv := startReal(t.TB, redistest.Options{Args: []string{"--appendonly", "yes", "--appendfsync", "always"}})
	t.srv = srv
	l := t.direct()
	lock := t.acquire(l, locker.Request{Name: t.key(), TTL: long, Fenced: true})
	t.ok(srv.real.Restart(t.ctx), "restart the server")
	t.ok(lock.Renew(t.ctx, 0), "Renew after a restart with data")
	t.covers(lock)
	t.contended(l, locker.Request{Name: lock.Name()})
	t.ok(lock.Release(t.ctx), "Release")
	next := t.acquire(l, locker.Request{Name: lock.Name(), TTL: long, Fenced: true})
	if next.Fence() <= lock.Fence() {
		t.Errorf("the fencing token went from %d to %d over a restart", lock.Fence(), next.Fence())
	}
	t.ok(next.Release(t.ctx), "Release")
}
