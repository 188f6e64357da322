package conformance

import (
	"time"

	"github.com/holdfast-go/holdfast/internal/faultproxy"
	"github.com/holdfast-go/holdfast/locker/driver"
)

var driverCloseCases = []testCase{
	{
		name: "a closed driver says so", on: anywhere,
		why: "a use after Close must be an error that says so and that nothing was sent, not a panic or a hang",
		run: closedDriverSaysSo,
	},
	{
		name: "close ends subscriptions", on: everywhere, needs: subscribes,
		why: "the connection that the adapter opened is the adapter's to close",
		run: closeEndsSubscriptions,
	},
	{
		name: "close does not wait for a frozen server", on: proxied,
		why: "a program that shuts down because the server is gone must get out",
		run: closeDoesNotWait,
	},
	{
		name: "info names client and server", on: anywhere,
		why: "traces and logs tell by it which server a lock lives on",
		run: infoNames,
	},
}

func closedDriverSaysSo(t *caseT) {
	drv := t.driver()
	t.warm(drv, countScript)
	t.ok(drv.Close(), "Close")
	for _, c := range commands {
		key := t.key()
		err := c.send(t.ctx, drv, key)
		t.is(err, driver.ErrClosed, "%s after Close", c.name)
		t.is(err, driver.ErrNotSent, "%s after Close", c.name)
		if t.exists(key) {
			t.Errorf("%s after Close was executed", c.name)
		}
	}
	if !t.h.lacks(FeatureSubscribe) {
		_, err := drv.Subscribe(t.ctx, t.key())
		t.is(err, driver.ErrClosed, "Subscribe after Close")
	}
	if b, ok := drv.(driver.Batcher); ok && !t.h.lacks(FeatureBatch) {
		for _, r := range b.EvalMany(t.ctx, []driver.Call{{Script: countScript, Keys: []string{t.key()}}}) {
			t.is(r.Err, driver.ErrClosed, "EvalMany after Close")
		}
	}
	t.is(drv.Close(), driver.ErrClosed, "the second Close")
}

func closeEndsSubscriptions(t *caseT) {
	drv, channel := t.driver(), t.key()
	sub := t.subscribe(drv, channel)
	t.promptly("Close", func() {
		if err := drv.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	t.eventually("nobody is subscribed", func() bool { return t.listeners(channel) == 0 })
	t.notClosed(sub)
	_ = sub.Close() // must not panic or hang; what it says is its own affair
}

func closeDoesNotWait(t *caseT) {
	p, drv := t.proxied()
	t.warm(drv, countScript)
	if !t.h.lacks(FeatureSubscribe) {
		t.subscribe(drv, t.key())
	}
	key := t.key()
	trap := p.Add(faultproxy.Rule{Match: faultproxy.Contains(key), Fault: faultproxy.Stall})
	bound := driver.Bound(t.ctx, 10*shortly)
	defer bound.Stop()
	flying := background(func() error {
		_, err := drv.SetNX(bound, key, "v", time.Minute)
		return err
	})
	t.event(trap.Hit(), "a reply is held back")
	p.Freeze()
	defer p.Thaw()
	t.promptly("Close", func() { _ = drv.Close() }) // it may complain
	if err := t.result(flying, "SetNX under way at Close"); err == nil {
		t.Errorf("SetNX under way at Close succeeded, although no answer came")
	}
}

func infoNames(t *caseT) {
	drv := t.driver()
	info := drv.Info()
	if info.Client == "" {
		t.Errorf("Driver.Info().Client is empty")
	}
	t.Logf("%s at %s", info.Client, info.Address)
}
