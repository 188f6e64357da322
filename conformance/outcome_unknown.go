package conformance

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/holdfast-go/holdfast/conformance/internal/suite"
	"github.com/holdfast-go/holdfast/internal/faultproxy"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/locktrace"
)

var unknownOutcomeCases = []testCase{
	{
		name: "a cancelled acquire that runs late leaves no key", contract: 5, on: suite.OneAddress,
		why: "a command may run after its caller gave up; a key that nobody holds locks everybody out for a TTL",
		run: lateAcquireLeavesNoKey,
	},
	{
		name: "an acquire cancelled at any instant leaves no key", contract: 5, on: suite.WithoutSentinel,
		why: "a caller that gives up, at whatever instant, must leave no lock behind",
		run: cancelledAnytimeLeavesNoKey,
	},
	{
		name: "a frozen server leaves no key", contract: 5, on: suite.OnlySingle, own: true,
		why: "a server that was frozen executes what it received later, and the order of connections is arbitrary",
		run: frozenServerLeavesNoKey,
	},
	{
		name: "the clean-up wakes waiters", contract: 5, on: suite.OneAddress, needs: subscribes,
		why: "a clean-up is a release: waiters should not have to wait for a timer",
		run: cleanUpWakes,
	},
	{
		name: "close waits for the clean-up", contract: 5, on: suite.OnlyMemory,
		why: "a program that gives up and exits would leave its lock to expire",
		run: closeWaitsForCleanUp,
	},
	{
		name: "an acquire in flight when the driver closes fails", contract: 5, on: suite.OnlyMemory,
		why: "nobody could renew or release its lock, and its key would stay for the TTL",
		run: closeEndsAcquires,
	},
	{
		name: "an acquire that was never sent has a known outcome", contract: 5, on: suite.OneAddress, own: true,
		why: "it cannot run late: a caller that is told otherwise waits for a lock that nobody has",
		run: unsentAcquireIsKnown,
	},
	{
		name: "the clean-up leaves the next holder alone", contract: 5, on: suite.OneAddress,
		why: "it goes on for a long time, and by then another may hold the lock",
		run: cleanUpLeavesNextAlone,
	},
}

// abandon cancels an acquire held back by a trap, and demands an unknown outcome. It returns the
// lock's name, and the trap.
func (t *caseT) abandon(p *faultproxy.Proxy, l locker.Locker, fenced bool) (string, *faultproxy.Trap) {
	t.Helper()
	return t.abandonBecause(context.Canceled, p, l, fenced)
}

// abandonBecause is abandon with a cause for the cancellation.
func (t *caseT) abandonBecause(
	cause error, p *faultproxy.Proxy, l locker.Locker, fenced bool,
) (name string, acquire *faultproxy.Trap) {
	t.Helper()
	name = t.Key()
	acquire, err := t.unansweredBecause(cause, p, name, faultproxy.StallRequest, "Acquire", func(ctx context.Context) error {
		_, err := l.Acquire(ctx, locker.Request{Name: name, TTL: long, Fenced: fenced})
		return err
	})
	t.Is(err, context.Canceled, "a cancelled Acquire")
	t.Is(err, locker.ErrUnknownOutcome, "a cancelled Acquire")
	t.notContention(err, "cancelled")
	return name, acquire
}

// lateAcquireLeavesNoKey lets the acquire run behind the clean-up, unless the client sends both on
// one connection. A clean-up that finds nothing must go on.
func lateAcquireLeavesNoKey(t *caseT) {
	type late struct {
		l       locker.Locker
		name    string
		acquire *faultproxy.Trap
	}
	var both []late // the clean-up of both goes on for seconds
	for _, fenced := range []bool{false, true} {
		p, l := t.behind()
		name, acquire := t.abandon(p, l, fenced)
		t.Eventually("the clean-up is sent", func() bool { return p.Sent(name) > 1 })
		both = append(both, late{l, name, acquire})
	}
	for _, one := range both {
		one.acquire.Release()
		t.Event(one.acquire.Executed(), "the late acquire runs")
	}
	for _, one := range both {
		t.Eventually("the key of the late acquire is removed", func() bool { return !t.Exists(one.name) })
		t.free(one.l, one.name)
	}
}

func cancelledAnytimeLeavesNoKey(t *caseT) {
	l := t.direct()
	t.warmLocker(l)
	start := time.Now()
	t.free(l, t.Key())
	cycle := time.Since(start)
	const instants = 60
	names := make([]string, instants)
	for i := range names {
		names[i] = t.Key()
		// From before the send to after the reply.
		ctx, cancel := context.WithTimeout(t.Ctx, cycle*time.Duration(i)/instants)
		lock, err := l.Acquire(ctx, locker.Request{Name: names[i], TTL: long, Fenced: i%2 == 0})
		cancel()
		if err == nil {
			t.OK(lock.Release(t.Ctx), "Release")
			continue
		}
		t.notContention(err, "cancelled")
		// of ctx, or of a socket with its deadline
		if timeout := net.Error(nil); !errors.As(err, &timeout) || !timeout.Timeout() {
			t.Errorf("an Acquire whose time is over: %v, want a timeout", err)
		}
	}
	for _, name := range names {
		t.Eventually("the key of a cancelled acquire is gone", func() bool { return !t.Exists(name) })
	}
}

func frozenServerLeavesNoKey(t *caseT) {
	p, l := t.behind()
	ctx, cancel := context.WithCancel(t.Ctx)
	defer cancel()
	results := map[string]<-chan error{}
	t.OK(t.Server.Real.Freeze(), "freeze the server")
	begin := func() {
		name := t.Key()
		results[name] = acquiring(ctx, l, locker.Request{Name: name, TTL: long, Fenced: len(results)%2 == 0})
	}
	for range 8 {
		begin()
	}
	t.Eventually("an acquire is sent", func() bool {
		for name := range results {
			if p.Sent(name) > 0 {
				return true
			}
		}
		begin() // the others wait for new connections, if the client has just got back its old one
		return false
	})
	cancel()
	for _, result := range results {
		err := t.Result(result, "Acquire from a frozen server")
		t.notContention(err, "frozen server")
		t.Is(err, context.Canceled, "Acquire from a frozen server")
	}
	t.OK(t.Server.Real.Thaw(), "let the server go on")
	for name := range results {
		t.freeSoon(l, locker.Request{Name: name, TTL: long}, "a key of the frozen server is gone, and the lock can be acquired")
	}
	// No key comes back later: nothing is still in flight.
	t.Do("", "PING")
	for name := range results {
		t.Eventually("no key comes back", func() bool { return !t.Exists(name) })
	}
}

func cleanUpWakes(t *caseT) {
	p, l := t.behind()
	other := t.direct()
	name := t.Key()
	trap := p.Add(faultproxy.Rule{Match: faultproxy.Contains(name), Fault: faultproxy.StallRequest, Every: true})
	ctx, cancel := context.WithCancel(t.Ctx)
	result := acquiring(ctx, l, locker.Request{Name: name, TTL: long})
	t.Event(trap.Hit(), "the acquire is held back")
	cancel()
	t.Is(t.Result(result, "a cancelled Acquire"), context.Canceled, "a cancelled Acquire")

	// Another client waits for a vanishing lock; then the late acquire runs and is cleaned up.
	t.acquire(other, locker.Request{Name: name, TTL: long})
	ce := t.contendedFor(other, locker.Request{Name: name})
	sub, err := ce.Channel.Subscribe(t.Ctx)
	t.OK(err, "subscribe to the lock's channel")
	defer sub.Close()
	t.Do(name, "DEL", name)
	suite.Drain(sub)
	trap.Release()
	t.Woken(sub, "the clean-up of a late acquire")
	t.Eventually("the key is gone", func() bool { return !t.Exists(name) })
}

func closeWaitsForCleanUp(t *caseT) {
	p, drv := t.Proxied()
	l := t.locker(drv)
	t.warmLocker(l)
	name := t.Key()
	acquire := p.Fail(name, faultproxy.Stall)
	cleanUp := p.Add(faultproxy.Rule{Match: faultproxy.Contains(name), Fault: faultproxy.StallRequest, Every: true})
	ctx, cancel := context.WithCancel(t.Ctx)
	result := acquiring(ctx, l, locker.Request{Name: name, TTL: long})
	t.Event(acquire.Hit(), "the acquire has run, and its reply is withheld")
	cancel()
	t.Is(t.Result(result, "a cancelled Acquire"), context.Canceled, "a cancelled Acquire")
	t.Event(cleanUp.Hit(), "the clean-up is held back")

	closing := suite.Background(drv.Close)
	t.Pause(attemptTimeout / 2)
	select {
	case err := <-closing:
		t.Fatalf("Close did not wait for the clean-up; it returned %v", err)
	default:
	}
	cleanUp.Release()
	acquire.Release()
	t.OK(t.Result(closing, "Close"), "Close")
	t.gone(name, "after Close")
}

func closeEndsAcquires(t *caseT) {
	for _, fault := range []faultproxy.Fault{faultproxy.Stall, faultproxy.StallRequest} {
		p, drv := t.Proxied()
		l := t.locker(drv)
		t.warmLocker(l)
		name := t.Key()
		trap := p.Fail(name, fault)
		result := acquiring(t.Ctx, l, locker.Request{Name: name, TTL: long})
		t.Event(trap.Hit(), "the acquire is held back")
		closing := suite.Background(drv.Close)
		t.Event(drv.UntilClose().Done(), "Close begins")
		trap.Release()
		t.Is(t.Result(result, "an Acquire under way"), locker.ErrClosed, "an Acquire that is answered after Close began")
		t.OK(t.Result(closing, "Close"), "Close")
		t.gone(name, "after Close")
	}
	closeDuringCallback(t)
}

// closeDuringCallback closes the driver after an acquire has succeeded and before it returns.
func closeDuringCallback(t *caseT) {
	drv := t.Driver()
	l := t.locker(drv)
	t.warmLocker(l)
	name := t.Key()
	inside, leave := make(chan struct{}), make(chan struct{})
	trace := &locktrace.Trace{Attempt: func(context.Context, locktrace.AttemptInfo) {
		close(inside)
		<-leave
	}}
	result := acquiring(locktrace.With(t.Ctx, trace), l, locker.Request{Name: name, TTL: long})
	t.Event(inside, "Trace.Attempt is called")
	closing := suite.Background(drv.Close)
	t.Event(drv.UntilClose().Done(), "Close begins")
	close(leave)
	t.Is(t.Result(result, "an Acquire whose callback ran as Close began"), locker.ErrClosed, "that Acquire")
	if err := t.Result(closing, "Close"); err == nil && t.Exists(name) {
		t.Errorf("its key is still there after Close")
	}
}

func cleanUpLeavesNextAlone(t *caseT) {
	p, l := t.behind()
	other := t.direct()
	// The acquire never reaches the server. The client cannot know this.
	name, _ := t.abandon(p, l, false)
	next := t.acquireSoon(other, locker.Request{Name: name, TTL: long})
	before := p.Sent(name)
	t.Eventually("the clean-up has looked again", func() bool { return p.Sent(name) >= before+2 })
	t.held(next)
	t.contended(other, locker.Request{Name: name})
	t.OK(next.Renew(t.Ctx, 0), "Renew of the next holder")
	t.OK(next.Release(t.Ctx), "Release of the next holder")
}

func unsentAcquireIsKnown(t *caseT) {
	p, l := t.behind()
	name := t.goesDown(p, l)
	t.OK(p.Accept(), "take connections again")
	t.freeSoon(l, locker.Request{Name: t.Key(), TTL: long}, "the server can be used again")
	if n := p.Sent(name); n > 0 {
		t.Errorf("%d commands were sent to clean up after an acquire that was not sent", n)
	}
}
