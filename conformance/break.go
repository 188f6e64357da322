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
)

// breakCases are about locker.Break. A strategy may do without it.
var breakCases = []testCase{
	{
		name: "Break ends a hold, whoever has it", contract: 7, on: suite.AllKinds,
		why: "an operator has neither the Lock nor its Handle",
		run: breakEndsHold,
	},
	{
		name: "Break wakes a waiter", contract: 12, on: suite.WithoutSentinel, needs: subscribes,
		why: "a waiter would sleep until the end of a lease that is over",
		run: breakWakesWaiter,
	},
	{
		name: "a Break whose reply is lost leaves the next holder alone", contract: 7, on: suite.OnlyMemory,
		why: "when it is resent, or executed late, another may hold the lock",
		run: lateBreakLeavesNext,
	},
	{
		name: "Break ends all holds of an owner", contract: 7, on: suite.WithoutSentinel, can: reenters,
		why: "the owner would still hold the lock",
		run: breakEndsAllOfOwner,
	},
	{
		name: "Break ends all readers", contract: 7, on: suite.WithoutSentinel, can: shares,
		why: "one reader that remains keeps writers out, and later readers must not have the fencing token of those that were ended",
		run: breakEndsReaders,
	},
	{
		name: "readers after a Break have a higher fencing token", contract: 7, on: suite.WithoutSentinel, can: shares,
		why: "what refuses the ended holders by their token would refuse these readers, or let those pass",
		run: breakRaisesFence,
	},
	{
		name: "Break ends all permits", contract: 7, on: suite.WithoutSentinel, permits: true,
		why: "what is left would count against the limit",
		run: breakEndsPermits,
	},
	{
		name: "Break ends a minimum hold", contract: minimumHold, on: suite.WithoutSentinel, can: minHold, leaves: true,
		why: "nobody else can end it: no Lock and no Handle of it is left",
		run: breakEndsMinHold,
	},
	{
		name: "Break ends a quorum's hold", contract: 7, on: suite.OneAddress, quorum: true,
		why: "what is left on the nodes would keep others out, and a dead node must not prevent the Break",
		run: breakEndsQuorum,
	},
}

// breaks demands that Break succeeds, and returns the ended state. ok is false if the strategy
// lacks Break.
func (t *caseT) breaks(l locker.Locker, name string) (state locker.State, ok bool) {
	t.Helper()
	state, err := locker.Break(t.Ctx, unwrap(l), name)
	if errors.Is(err, errors.ErrUnsupported) {
		return state, false
	}
	t.OK(err, "Break")
	if !state.Held || state.Left <= 0 {
		t.Errorf("Break ended %+v", state)
	}
	return state, true
}

// nothingToBreak demands that Break returns ErrNotHeld.
func (t *caseT) nothingToBreak(l locker.Locker, name string) {
	t.Helper()
	_, err := locker.Break(t.Ctx, unwrap(l), name)
	t.Is(err, locker.ErrNotHeld, "Break of a name that is free")
	t.isNot(err, locker.ErrLost, "Break of a name that is free")
}

// broken demands that the holders of locks learn of Break.
func (t *caseT) broken(locks ...*locker.Lock) {
	t.Helper()
	for _, lock := range locks {
		t.Is(lock.Renew(t.Ctx, 0), locker.ErrLost, "Renew after Break")
		t.lost(lock)
	}
}

func breakEndsHold(t *caseT) {
	a, b := t.direct(), t.direct()
	for _, fenced := range []bool{false, true} {
		lock := t.acquire(a, locker.Request{Name: t.Key(), TTL: long, Fenced: fenced, Owner: "stuck", Note: "why"})
		state, ok := t.breaks(b, lock.Name())
		if !ok {
			return
		}
		if state.Owner != "stuck" || !strings.HasPrefix(state.Note, "why") || state.Holds != 1 ||
			state.Mode != locker.Exclusive {
			t.Errorf("Break ended %+v", state)
		}
		if fenced && state.Fence != 0 && state.Fence != lock.Fence() {
			t.Errorf("Break reports the fencing token %d, the lock had %d", state.Fence, lock.Fence())
		}
		t.gone(lock.Name(), "after Break")
		t.broken(lock)
		t.nothingToBreak(b, lock.Name())
		next := t.acquire(b, locker.Request{Name: lock.Name(), TTL: long, Fenced: fenced})
		if fenced && next.Fence() <= lock.Fence() {
			t.Errorf("after Break the fencing token went from %d to %d", lock.Fence(), next.Fence())
		}
		t.Is(lock.Release(t.Ctx), locker.ErrLost, "Release after Break")
		t.OK(next.Renew(t.Ctx, 0), "Renew of the next holder")
		t.OK(next.Release(t.Ctx), "Release of the next holder")
	}
}

func breakWakesWaiter(t *caseT) {
	name := t.Key()
	lock := t.acquire(t.direct(), locker.Request{Name: name, TTL: long})
	if !t.hasPlaces(name) {
		return
	}
	waiter := t.places(name, 1)[0]
	waiter.refused()
	if _, ok := t.breaks(t.direct(), name); !ok {
		return
	}
	t.Woken(waiter.sub, "the waiter")
	next := waiter.acquired()
	t.broken(lock)
	t.OK(next.Release(t.Ctx), "Release")
}

func lateBreakLeavesNext(t *caseT) {
	p, l := t.behind()
	strategy, ok := lease.Find[breaker](unwrap(l))
	if !ok {
		return
	}
	other := t.direct()
	for what, fault := range map[string]faultproxy.Fault{
		"the reply is lost": faultproxy.DropReply, "it is held back": faultproxy.StallRequest,
	} {
		lock := t.acquire(other, locker.Request{Name: t.Key(), TTL: long})
		_, end, err := strategy.FindHolds(t.Ctx, lock.Name())
		if errors.Is(err, errors.ErrUnsupported) {
			return
		}
		t.OK(err, "FindHolds")
		trap := p.Fail(lock.Name(), fault)
		ended := suite.Background(func() error { return end(t.Ctx) })
		t.Event(trap.Hit(), "the fault happens")
		if fault == faultproxy.StallRequest {
			t.OK(lock.Release(t.Ctx), "Release of the hold that is to be ended")
		}
		next := t.acquire(other, locker.Request{Name: lock.Name(), TTL: long}) // before the resend
		err = t.Result(ended, "Break")
		if err != nil && !errors.Is(err, locker.ErrUnknownOutcome) {
			t.Errorf("%s: Break returned %v", what, err)
		}
		if fault == faultproxy.StallRequest {
			trap.Release()
			t.Event(trap.Executed(), "the late command is executed")
		}
		t.OK(next.Renew(t.Ctx, 0), "Renew of the next holder")
		t.OK(next.Release(t.Ctx), "Release of the next holder")
	}
}

func breakEndsAllOfOwner(t *caseT) {
	l := t.direct()
	req := locker.Request{Name: t.Key(), TTL: long, Owner: "me"}
	locks := []*locker.Lock{t.acquire(l, req), t.acquire(l, req), t.acquire(t.direct(), req)}
	state, ok := t.breaks(t.direct(), req.Name)
	if !ok {
		return
	}
	if state.Holds != len(locks) {
		t.Errorf("Break ended %d of %d holds", state.Holds, len(locks))
	}
	t.gone(req.Name, "after Break")
	t.broken(locks...)
}

func breakEndsReaders(t *caseT) {
	l, other := t.direct(), t.direct()
	for _, fenced := range []bool{true, false} {
		req := locker.Request{Name: t.Key(), Mode: locker.Shared, TTL: long, Fenced: fenced}
		locks := []*locker.Lock{t.acquire(l, req), t.acquire(l, req), t.acquire(other, req)}
		state, ok := t.breaks(other, req.Name)
		if !ok {
			return
		}
		if state.Mode != locker.Shared || state.Holds != len(locks) {
			t.Errorf("Break ended %+v", state)
		}
		t.gone(req.Name, "after Break")
		reader := t.acquire(l, req)
		if fenced && (reader.Fence() <= locks[0].Fence() || reader.Fence() <= state.Fence) {
			t.Errorf("after Break of readers with the fencing token %d, reported as %d, one has %d", locks[0].Fence(),
				state.Fence, reader.Fence())
		}
		t.broken(locks...)
		t.OK(reader.Release(t.Ctx), "Release of a later reader")
	}
}

func breakRaisesFence(t *caseT) {
	l, other := t.direct(), t.direct()
	strategy, ok := lease.Find[breaker](unwrap(l))
	if !ok {
		return
	}
	for _, mode := range []locker.Mode{locker.Exclusive, locker.Shared} {
		req := locker.Request{Name: t.Key(), Mode: mode, TTL: long, Fenced: true}
		lock := t.acquire(other, req)
		state, end, err := strategy.FindHolds(t.Ctx, req.Name)
		if errors.Is(err, errors.ErrUnsupported) {
			return
		}
		t.OK(err, "FindHolds")
		req.Mode = locker.Shared
		var later []*locker.Lock
		if mode == locker.Shared {
			later = append(later, t.acquire(other, req)) // it is not among those found
		}
		t.OK(end(t.Ctx), "Break")
		t.broken(lock)
		for _, reader := range append(later, t.acquire(other, req)) {
			if reader.Fence() <= lock.Fence() || reader.Fence() <= state.Fence {
				t.Errorf("after Break of a hold (%v) with the fencing token %d, reported as %d, a reader has %d", mode,
					lock.Fence(), state.Fence, reader.Fence())
			}
			t.OK(reader.Release(t.Ctx), "Release of a later reader")
		}
	}
}

func breakEndsPermits(t *caseT) {
	a, b, name := t.semaphore(t.Driver(), 4), t.semaphore(t.Driver(), 4), t.Key()
	locks := []*locker.Lock{t.permits(a, name, 1), t.permits(b, name, 2), t.permits(b, name, 1)}
	state, ok := t.breaks(a, name)
	if !ok {
		return
	}
	if state.Holds != len(locks) || state.Permits != 4 || state.Free != 0 {
		t.Errorf("Break ended %+v", state)
	}
	t.nothingToBreak(a, name)
	t.broken(locks...)
	t.OK(t.permits(b, name, 4).Release(t.Ctx), "Release of all permits")
}

func breakEndsMinHold(t *caseT) {
	l, other := t.direct(), t.direct()
	req := locker.Request{Name: t.Key(), TTL: long, MinHold: long, Owner: "worker 7"}
	end := func(what string, holds int) bool {
		t.Helper()
		state, ok := t.breaks(other, req.Name)
		if ok && (state.Holds != holds || state.Owner != req.Owner) {
			t.Errorf("%s: Break ended %+v", what, state)
		}
		return ok
	}
	t.OK(t.acquire(l, req).Release(t.Ctx), "Release before MinHold")
	if !end("a minimum hold", 0) {
		return
	}
	t.gone(req.Name, "after Break")
	lock := t.acquire(other, req)
	if !t.h.Can.Reentrant {
		return
	}
	again := t.acquire(other, req)
	t.OK(again.Release(t.Ctx), "Release of the inner hold")
	end("a minimum hold beside a hold", 1)
	t.gone(req.Name, "after Break")
	t.broken(lock)
}

func breakEndsQuorum(t *caseT) {
	proxies, l := t.quorumBehind()
	a, name := t.quorum(), t.Key()
	lock := t.acquire(a, locker.Request{Name: name, TTL: long, Owner: "stuck"})
	t.onAllNodes(lock)
	state, ok := t.breaks(l, name)
	if !ok {
		return
	}
	if state.Owner != "stuck" || state.Holds != 1 {
		t.Errorf("Break ended %+v", state)
	}
	t.noNodeHas(name)
	t.broken(lock)
	t.nothingToBreak(l, name)

	lock = t.acquire(a, locker.Request{Name: name, TTL: long})
	t.onAllNodes(lock)
	disconnect(proxies[0], proxies[4])
	t.breaks(l, name)
	t.broken(lock)
	disconnect(proxies[1])
	ctx, cancel := context.WithTimeout(t.Ctx, 10*time.Second)
	defer cancel()
	_, err := locker.Break(ctx, l, name)
	t.notContention(err, "Break without a quorum")
	t.isNot(err, locker.ErrNotHeld, "Break without a quorum")
	if err == nil {
		t.Errorf("Break succeeded without a quorum")
	}
}
