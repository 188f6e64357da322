package conformance

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/conformance/internal/suite"
	"github.com/holdfast-go/holdfast/internal/faultproxy"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/locktrace"
	"github.com/holdfast-go/holdfast/middleware/retry"
)

var closeCases = []testCase{
	{
		name: "close ends the wait for a lock", contract: 13, on: suite.OneAddress,
		why: "a program that shuts down would wait for callers that find out at their next poll",
		run: closeEndsWaits,
	},
	{
		name: "close waits until several locks are released", contract: 14, on: suite.OneAddress,
		why: "what a call for several names holds when the driver is closed would stay taken until its TTL",
		run: closeReleasesSeveral,
	},
	{
		name: "close of a node waits until a quorum's attempt is undone", contract: 5, on: suite.OneAddress, quorum: true,
		why: "a node lock of an attempt that fails would stay taken until its TTL on each node that was closed first",
		run: closeUndoesQuorum,
	},
}

func closeEndsWaits(t *caseT) {
	held := t.acquire(t.direct(), locker.Request{Name: t.Key(), TTL: long})
	drv := t.Driver()
	t.connect(drv)
	waiting := t.waiting(t.locker(drv), retry.Config{Policy: never})
	var results []<-chan error
	for i := range 3 {
		match := t.settled
		if i > 0 { // the second and the third wait for the first
			match = waits
		}
		results = append(results, t.waitAndFail(waiting, locker.Request{Name: held.Name(), TTL: long}, match))
	}
	began := time.Now()
	t.Close(drv)
	for _, result := range results {
		t.Is(t.Result(result, "a waiter whose driver was closed"), locker.ErrClosed, "a waiter whose driver was closed")
	}
	if t.InFakeTime() {
		t.took(began, 0, "Close and what it ended")
	}
	t.held(held)
}

// waitAndFail is waitAs for a failing acquire. The error arrives on the channel.
func (t *caseT) waitAndFail(l locker.Locker, req locker.Request, match func(locktrace.WaitingInfo) bool) <-chan error {
	t.Helper()
	waiting := make(chan struct{}, 1)
	ctx := locktrace.With(t.Ctx, &locktrace.Trace{Waiting: func(_ context.Context, info locktrace.WaitingInfo) {
		if match(info) {
			select {
			case waiting <- struct{}{}:
			default:
			}
		}
	}})
	result := acquiring(ctx, l, req)
	t.Event(waiting, "the waiter waits")
	return result
}

// closeReleasesSeveral closes the driver during a call's wait for the last of its names.
func closeReleasesSeveral(t *caseT) {
	names := t.keys(4)
	held := t.acquire(t.direct(), locker.Request{Name: names[3], TTL: long})
	drv := t.Driver()
	t.connect(drv)
	waits := make(chan struct{}, 1)
	l := notifying(t.waiting(t.locker(drv), retry.Config{Policy: never}), waits)
	result := suite.Background(func() error {
		return t.doAll(l, lasting(names...), func(context.Context, []*locker.Lock) error {
			t.Errorf("the work runs although another holds one of its locks")
			return nil
		})
	})
	t.Event(waits, "the call waits")
	if t.Close(drv) {
		for _, name := range names[:3] {
			t.gone(name, "after Close")
		}
	}
	t.Is(t.Result(result, "DoAll"), locker.ErrClosed, "DoAll whose driver was closed")
	t.held(held)
}

// closeUndoesQuorum closes the driver of a node that has granted its lock, while the attempt waits
// for others.
func closeUndoesQuorum(t *caseT) {
	var drivers []driver.Driver
	var nodes []locker.Locker
	var traps []*faultproxy.Trap
	name := t.Key()
	for i := range quorumSize {
		target, p := t.Server.Nodes[i].Target, t.Server.Nodes[i].Proxy(t.TB)
		target.Addrs = []string{p.Addr()}
		drv := t.Dial(target)
		t.connect(drv)
		drivers, nodes = append(drivers, drv), append(nodes, t.locker(drv))
		if i >= majority-1 {
			traps = append(traps, p.Add(faultproxy.Rule{Match: faultproxy.Contains(name), Fault: faultproxy.StallRequest, Every: true}))
		}
	}
	ctx, cancel := context.WithCancel(t.Ctx)
	defer cancel()
	result := acquiring(ctx, t.quorumOf(nodes, 0), locker.Request{Name: name, TTL: long})
	for _, trap := range traps {
		t.Event(trap.Hit(), "a node is asked, and the command is held back")
	}
	t.Eventually("the first node has granted its lock", func() bool { return t.nodeHas(0, name) })
	began := time.Now()
	closing := suite.Background(drivers[0].Close)
	t.Event(drivers[0].UntilClose().Done(), "Close begins")
	cancel()
	if t.CheckClose(t.Result(closing, "Close of the first node"), began) && t.nodeHas(0, name) {
		t.Errorf("the first node has the key of a failed attempt after Close")
	}
	t.Is(t.Result(result, "a cancelled Acquire"), context.Canceled, "a cancelled Acquire")
	for _, trap := range traps {
		trap.Release()
	}
}
