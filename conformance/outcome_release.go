package conformance

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/conformance/internal/suite"
	"github.com/holdfast-go/holdfast/internal/faultproxy"
	"github.com/holdfast-go/holdfast/locker"
)

var releaseOutcomeCases = []testCase{
	{
		name: "a release whose reply is lost succeeds", contract: 7, on: suite.OneAddress,
		why: "when it is resent it finds nothing: that is its own success, not a loss of the lock",
		run: lostReleaseSucceeds,
	},
	{
		name: "a release that never arrived succeeds", contract: 7, on: suite.OneAddress,
		why: "if it were given up after one send, the lock would stay taken for a TTL",
		run: cutReleaseSucceeds,
	},
	{
		name: "a release is final", contract: 7, on: suite.WithoutSentinel,
		why: "of two releases one must act; the other returns ErrReleased and sends nothing that could affect the next holder",
		run: releaseIsFinal,
	},
	{
		name: "a cancelled context does not stop a release", contract: 7, on: suite.AllKinds,
		why: "work that is cancelled must still release its lock",
		run: cancelledReleaseReleases,
	},
	{
		name: "a release after a loss is still sent", contract: 7, on: suite.WithoutSentinel,
		why: "a lock that is taken for lost may still have its key, which would block everybody for the rest of the lease",
		run: releaseAfterLossIsSent,
	},
	{
		name: "a release from a frozen server is bounded", contract: 7, on: suite.OnlyMemory,
		why: "a release must not hang; its outcome is unknown, which is not a loss",
		run: frozenReleaseIsBounded,
	},
	{
		name: "a release waits for no longer than its timeout", contract: 7, on: suite.OnlyMemory, can: releaseTimeout,
		why: "a request or a process that ends cannot wait for as long as a command may take; the release goes on",
		run: releaseTimeoutBounds,
	},
	{
		name: "a release of unknown outcome is resent", contract: 7, on: suite.OneAddress,
		why: "one lost reply must not keep the key until its TTL",
		run: unknownReleaseIsResent,
	},
	{
		name: "a release that could not be sent is resent", contract: 7, on: suite.OnlyMemory, can: releaseTimeout,
		why: "a server that takes no connection for a second must not keep the lock until its TTL",
		run: unsentReleaseIsResent,
	},
	{
		name: "a refused release is resent", contract: 7, on: suite.OnlyMemory, own: true,
		why: "a server that is read-only for a moment must not keep the lock until its TTL",
		run: refusedReleaseIsResent,
	},
}

// releaseThrough releases a lock through a fault, and demands success.
func (t *caseT) releaseThrough(what string, fault faultproxy.Fault, req locker.Request) {
	t.Helper()
	p, l := t.behind()
	req.Name = t.Key()
	lock := t.acquire(l, req)
	trap := p.Fail(req.Name, fault)
	err := t.Call("Release", func() error { return lock.Release(t.Ctx) })
	t.Event(trap.Hit(), "the fault happens")
	t.OK(err, "Release that is %s", what)
	t.gone(req.Name, "after Release that is %s", what)
}

func lostReleaseSucceeds(t *caseT) {
	for what, fault := range t.noticed(answerLost) {
		t.releaseThrough(what, fault, locker.Request{TTL: faulty})
	}
}

func cutReleaseSucceeds(t *caseT) {
	for _, fenced := range []bool{false, true} {
		t.releaseThrough("cut before", faultproxy.CutBefore, locker.Request{TTL: long, Fenced: fenced})
	}
}

func releaseIsFinal(t *caseT) {
	l := t.direct()
	lock := t.acquire(l, locker.Request{Name: t.Key(), TTL: long})
	t.OK(lock.Release(t.Ctx), "Release")
	next := t.acquire(l, locker.Request{Name: lock.Name(), TTL: long})
	t.Is(lock.Release(t.Ctx), locker.ErrReleased, "the second Release")
	t.Is(lock.Renew(t.Ctx, 0), locker.ErrReleased, "Renew after Release")
	t.Is(lock.Err(), locker.ErrReleased, "Err after Release")
	t.isNot(lock.Err(), locker.ErrLost, "Err after Release")
	t.contended(l, locker.Request{Name: lock.Name()})
	t.OK(next.Release(t.Ctx), "Release of the next holder")

	for range 10 {
		lock := t.acquire(l, locker.Request{Name: t.Key(), TTL: long})
		var wg sync.WaitGroup
		var released atomic.Int32
		for range 4 {
			wg.Go(func() {
				switch err := lock.Release(t.Ctx); {
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
		lock := t.acquire(l, locker.Request{Name: t.Key(), TTL: long, Fenced: fenced})
		t.released(lock.Release(t.canceled()), lock.Name(), "Release with a cancelled context")
	}
}

// released demands that a release under an ended context has removed its key. Such a release is
// sent once: on a slow server its outcome is unknown, and the clean-up removes the key.
func (t *caseT) released(err error, name, what string) {
	t.Helper()
	if !errors.Is(err, locker.ErrUnknownOutcome) || t.InFakeTime() {
		t.OK(err, "%s", what)
		t.gone(name, "after %s", what)
	}
	t.Eventually("the key is removed", func() bool { return !t.Exists(name) })
}

func releaseAfterLossIsSent(t *caseT) {
	l := t.direct()
	cause := errors.New("the network said so")
	lock := t.acquire(l, locker.Request{Name: t.Key(), TTL: long})
	lock.Hold().MarkLost(cause)
	t.lost(lock)
	t.Is(lock.Err(), cause, "Err of a lock marked as lost")
	err := lock.Release(t.Ctx)
	t.Is(err, locker.ErrLost, "Release after the loss")
	t.Is(err, cause, "Release after the loss")
	t.gone(lock.Name(), "after Release of a lock that was taken for lost")
	t.Is(lock.Release(t.Ctx), locker.ErrReleased, "the second Release")
}

func frozenReleaseIsBounded(t *caseT) {
	p, l := t.behind()
	lock := t.acquire(l, locker.Request{Name: t.Key(), TTL: long})
	p.Freeze()
	began := time.Now()
	err := lock.Release(t.canceled())
	if took := time.Since(began); took > attemptTimeout+latency {
		t.Errorf("Release from a frozen server took %v, want %v at most", took, attemptTimeout)
	}
	p.Thaw()
	t.Is(err, locker.ErrUnknownOutcome, "Release from a frozen server")
	t.isNot(err, locker.ErrLost, "Release from a frozen server")
	t.isNot(err, locker.ErrNotHeld, "Release from a frozen server")
	t.Is(lock.Err(), locker.ErrReleased, "Err after Release")
	t.Is(lock.Release(t.Ctx), locker.ErrReleased, "the second Release")
}

func releaseTimeoutBounds(t *caseT) {
	const timeout = attemptTimeout / 3
	p, drv := t.Proxied()
	l := t.bounded(drv, Timeouts{Attempt: attemptTimeout, Release: timeout})
	for what, ctx := range map[string]context.Context{"live": t.Ctx, "cancelled": t.canceled()} {
		lock := t.acquire(l, locker.Request{Name: t.Key(), TTL: long})
		trap := p.Fail(lock.Name(), faultproxy.Stall)
		began := time.Now()
		err := lock.Release(ctx)
		t.took(began, timeout, "Release without an answer, with a %s context,", what)
		t.Event(trap.Hit(), "the answer is held back")
		t.Is(err, locker.ErrUnknownOutcome, "Release without an answer, with a %s context", what)
		t.isNot(err, locker.ErrLost, "Release without an answer, with a %s context", what)
		trap.Release()
		t.Eventually("the release is executed", func() bool { return !t.Exists(lock.Name()) })
	}
}

func unknownReleaseIsResent(t *caseT) {
	p, l := t.behind()
	lock := t.acquire(l, locker.Request{Name: t.Key(), TTL: long})
	p.Fail(lock.Name(), faultproxy.CutBefore)
	err := t.Call("Release", func() error { return lock.Release(t.canceled()) })
	if err != nil { // a cancelled context allows a single send
		t.Is(err, locker.ErrUnknownOutcome, "Release that never arrived")
		t.isNot(err, locker.ErrNotHeld, "Release that never arrived")
	}
	t.Eventually("the key is removed", func() bool { return !t.Exists(lock.Name()) })
}

func unsentReleaseIsResent(t *caseT) {
	p := t.Server.Proxy(t.TB)
	target := t.Through(p)
	dial := target.Dial
	var unreachable atomic.Bool
	back, comeBack := context.WithCancel(t.Ctx)
	target.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
		if unreachable.Load() {
			select {
			case <-back.Done():
			case <-ctx.Done():
			}
		}
		return dial(ctx, network, addr)
	}
	l := t.locker(t.Dial(target))
	t.Cleanup(comeBack)
	lock := t.acquire(l, locker.Request{Name: t.Key(), TTL: long})
	unreachable.Store(true)
	p.CutAll()
	_, err := l.Acquire(t.Ctx, locker.Request{Name: t.Key(), NoWait: true}) // after it no client has a connection
	if err == nil {
		t.Fatalf("Acquire succeeded while no connection could be opened")
	}
	time.AfterFunc(3*attemptTimeout/2, comeBack)
	t.OK(t.Call("Release", func() error { return lock.Release(t.Ctx) }), "Release while no connection could be opened")
	t.gone(lock.Name(), "after Release while no connection could be opened")
}

func refusedReleaseIsResent(t *caseT) {
	_, l := t.behind()
	for _, text := range []string{"READONLY You can't write against a read only replica.",
		"ERR something that nobody has heard of"} {
		lock := t.acquire(l, locker.Request{Name: t.Key(), TTL: long})
		t.Server.Mini.SetError(text)
		err := t.Call("Release", func() error { return lock.Release(t.canceled()) })
		t.Server.Mini.SetError("")
		if err == nil {
			t.Errorf("Release that was answered %q succeeded", text)
		}
		t.isNot(err, locker.ErrNotHeld, "Release that was answered %q", text)
		t.Is(lock.Err(), locker.ErrReleased, "Err after Release")
		t.Eventually("the key is removed", func() bool { return !t.Exists(lock.Name()) })
	}
}
