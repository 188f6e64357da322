package drivertest

import (
	"time"

	"github.com/holdfast-go/holdfast/conformance/internal/suite"
	"github.com/holdfast-go/holdfast/locker/driver"
)

func subscriptionOutlastsSilence(t *caseT) {
	drv := t.Driver()
	a, b := t.Key(), t.Key()
	first, second := t.subscribe(drv, a), t.subscribe(drv, b)
	spurious := 0
	for range 60 {
		t.Pause(time.Second)
		select {
		case <-first.Wake():
			spurious++
		default:
		}
	}
	if spurious > 1 {
		t.Errorf("a subscription without messages was woken %d times in a minute", spurious)
	}
	for channel, sub := range map[string]driver.Subscription{a: first, b: second} {
		if n := t.Listeners(channel); n != 1 {
			t.Errorf("after a minute without messages the server counts %d subscribers, want 1", n)
		}
		suite.Drain(sub)
		t.Do(channel, "PUBLISH", channel, "")
		t.Woken(sub, "after a minute without messages")
	}
	t.OK(first.Close(), "Close")
	t.Eventually("nobody is subscribed", func() bool { return t.Listeners(a) == 0 })
}

func busyServerEndsNoSubscription(t *caseT) {
	drv, channel := t.Driver(), t.Key()
	sub := t.subscribe(drv, channel)
	before := t.Server.Mini.TotalConnectionCount()
	t.Server.Mini.SetError("BUSY Redis is busy running a script.")
	t.Pause(time.Minute)
	t.Server.Mini.SetError("")
	if n := t.Server.Mini.TotalConnectionCount() - before; n > 10 {
		t.Errorf("%d connections were opened in a minute in which the server was busy", n)
	}
	t.Eventually("a message has a receiver", func() bool { return t.Listeners(channel) == 1 })
	suite.Drain(sub)
	t.Do(channel, "PUBLISH", channel, "")
	t.Woken(sub, "after a minute of refusals")
}
