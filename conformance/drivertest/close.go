package drivertest

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/conformance/internal/suite"
	"github.com/holdfast-go/holdfast/internal/faultproxy"
	"github.com/holdfast-go/holdfast/locker/driver"
)

var closeCases = []testCase{
	{
		name: "a closed driver returns ErrClosed", on: suite.AllKinds,
		why: "a use after Close must be an error that says so and that nothing was sent, not a panic or a hang",
		run: closedDriverReturnsErrClosed,
	},
	{
		name: "close ends subscriptions", on: suite.WithoutSentinel, needs: subscribes,
		why: "the connection that the adapter opened is the adapter's to close",
		run: closeEndsSubscriptions,
	},
	{
		name: "close tells who waits for it", on: suite.AllKinds,
		why: "callers that wait for a lock would find out at their next attempt that there is none",
		run: closeTells,
	},
	{
		name: "close does not wait for a frozen server", on: suite.OneAddress,
		why: "a program that shuts down because the server is gone must get out",
		run: closeDoesNotWait,
	},
	{
		name: "info names client and server", on: suite.AllKinds,
		why: "traces and logs show with it which server a lock is on",
		run: infoNames,
	},
}

func closedDriverReturnsErrClosed(t *caseT) {
	drv := t.Driver()
	t.warm(drv, countScript)
	t.OK(drv.Close(), "Close")
	for _, c := range commands {
		key := t.Key()
		err := c.send(t.Ctx, drv, key)
		t.Is(err, driver.ErrClosed, "%s after Close", c.name)
		t.Is(err, driver.ErrNotSent, "%s after Close", c.name)
		if t.Exists(key) {
			t.Errorf("%s after Close was executed", c.name)
		}
	}
	if !t.Lacks(FeatureSubscribe) {
		_, err := drv.Subscribe(t.Ctx, t.Key())
		t.Is(err, driver.ErrClosed, "Subscribe after Close")
	}
	t.Is(drv.Close(), driver.ErrClosed, "the second Close")
}

func closeEndsSubscriptions(t *caseT) {
	drv, channel := t.Driver(), t.Key()
	sub := t.subscribe(drv, channel)
	t.OK(t.Call("Close", drv.Close), "Close")
	t.Eventually("nobody is subscribed", func() bool { return t.Listeners(channel) == 0 })
	t.notClosed(sub)
	_ = sub.Close() // must not panic or hang; any error is right
}

func closeTells(t *caseT) {
	drv := t.Driver()
	open := drv.UntilClose()
	t.OK(open.Err(), "the context of an open driver")
	end, err := drv.BeginAcquire()
	t.OK(err, "BeginAcquire")
	began := time.Now()
	closing := suite.Background(drv.Close)
	t.Event(open.Done(), "UntilClose's context ends, while Close waits for an acquire")
	t.Event(drv.UntilClose().Done(), "UntilClose's context during Close ends")
	_, err = drv.BeginAcquire()
	t.Is(err, driver.ErrClosed, "BeginAcquire during Close")
	select {
	case err := <-closing:
		if t.CheckClose(err, began) {
			t.Fatalf("Close did not wait for the acquire")
		}
		end()
	default:
		end()
		t.CheckClose(t.Result(closing, "Close"), began)
	}
	t.Event(drv.UntilClose().Done(), "UntilClose's context after Close ends")
}

func closeDoesNotWait(t *caseT) {
	p, drv := t.Proxied()
	t.warm(drv, countScript)
	if !t.Lacks(FeatureSubscribe) {
		t.subscribe(drv, t.Key())
	}
	key := t.Key()
	trap := p.Fail(key, faultproxy.Stall)
	ctx, cancel := context.WithCancel(t.Ctx)
	defer cancel()
	flying := suite.Background(func() error {
		_, err := drv.SetNX(ctx, key, "v", time.Minute)
		return err
	})
	t.Event(trap.Hit(), "a reply is held back")
	p.Freeze()
	defer p.Thaw()
	t.Promptly("Close", func() { _ = drv.Close() }) // any error is right
	cancel()
	if err := t.Result(flying, "SetNX under way at Close"); err == nil {
		t.Errorf("SetNX under way at Close succeeded, although no answer came")
	}
}

func infoNames(t *caseT) {
	drv := t.Driver()
	info := drv.Info()
	if info.Client == "" {
		t.Errorf("Driver.Info().Client is empty")
	}
	t.Logf("%s at %s", info.Client, info.Address)
}
