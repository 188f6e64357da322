package drivertest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/conformance/internal/suite"
	"github.com/holdfast-go/holdfast/internal/faultproxy"
	"github.com/holdfast-go/holdfast/locker/driver"
)

var subscribes = []Feature{FeatureSubscribe}

var subscribeCases = []testCase{
	{
		name: "subscribe returns confirmed", on: suite.AllKinds, needs: subscribes,
		why: "a release published between the call and its confirmation would be missed by a waiter that tried just before",
		run: subscribeReturnsConfirmed,
	},
	{
		name: "messages of one channel wake its listeners only", on: suite.WithoutSentinel, needs: subscribes,
		why: "subscriptions share a connection; a wake-up must reach each one of the channel",
		run: wakesItsListenersOnly,
	},
	{
		name: "counted receivers are right", on: suite.WithoutCluster, needs: subscribes,
		why: "a release skips a waiter whose channel has no receiver: a wrong number loses a waiter its place, or a wake-up",
		run: countedReceiversAreRight,
	},
	{
		name: "unread messages block nobody", on: suite.WithoutSentinel, needs: subscribes,
		why: "a subscription that is not read must not block the others or the connection",
		run: unreadMessagesBlockNobody,
	},
	{
		name: "a reconnect wakes every subscription", on: suite.OneAddress, needs: subscribes,
		why: "a message published while the connection was down is lost, so every waiter must try again",
		run: reconnectWakes,
	},
	{
		name: "a killed subscriber comes back", on: suite.OnlySingle, own: true, needs: subscribes,
		why: "CLIENT KILL and a restart end the connection, and waiters are not told",
		run: killedSubscriberComesBack,
	},
	{
		name: "a subscription outlasts a silence", on: suite.OnlyMemory, needs: subscribes,
		why: "a waiter may hear nothing for long: what a driver does to check a connection must not end its subscriptions",
		run: subscriptionOutlastsSilence,
	},
	{
		name: "a busy server ends no subscription", on: suite.OnlyMemory, needs: subscribes,
		why: "while a script runs for long the server refuses commands: clients that reconnect because of that make it worse",
		run: busyServerEndsNoSubscription,
	},
	{
		name: "subscriptions share one connection", on: suite.OnlySingle, own: true, needs: subscribes,
		why: "a connection per waiter exhausts the server's clients",
		run: subscriptionsShareOneConnection,
	},
	{
		name: "a closed subscription is unsubscribed", on: suite.WithoutSentinel, needs: subscribes,
		why: "a channel that nobody listens to must not stay subscribed for ever",
		run: closedSubscriptionIsUnsubscribed,
	},
	{
		name: "subscribe obeys its context", on: suite.OnlyMemory, needs: subscribes,
		why: "a waiter whose time is over must not hang in Subscribe",
		run: subscribeObeysItsContext,
	},
	{
		name: "a forbidden channel does not disturb the others", on: suite.OnlySingle, own: true, needs: subscribes,
		why: "one channel that the ACL refuses must not stop the wake-ups of the others that share the connection",
		run: forbiddenChannelDisturbsNobody,
	},
	{
		name: "a forbidden channel is an error", on: suite.OnlySingle, own: true, needs: subscribes,
		why: "a waiter that may not subscribe must learn of it and poll, instead of waiting for wake-ups that never come",
		run: forbiddenChannelIsAnError,
	},
}

// subscribe subscribes until the end of the case, and drains the wake-up of the confirmation if
// there is one.
func (t *caseT) subscribe(drv driver.Driver, channel string) driver.Subscription {
	t.Helper()
	sub, err := drv.Subscribe(t.Ctx, channel)
	if err != nil {
		t.Fatalf("Subscribe: %v", err)
	}
	t.Cleanup(func() {
		if err := sub.Close(); err != nil && !errors.Is(err, driver.ErrClosed) {
			t.Errorf("Subscription.Close: %v", err)
		}
	})
	t.Do(channel, "PING")
	suite.Drain(sub)
	return sub
}

func subscribeReturnsConfirmed(t *caseT) {
	drv := t.Driver()
	for range 5 {
		channel := t.Key()
		sub := t.subscribe(drv, channel)
		if n := t.Listeners(channel); n != 1 {
			t.Fatalf("after Subscribe the server counts %d subscribers, want 1", n)
		}
		for range 2 {
			t.Do(channel, "PUBLISH", channel, "")
			t.Woken(sub, "PUBLISH")
		}
	}
}

func wakesItsListenersOnly(t *caseT) {
	drv := t.Driver()
	a, b := t.Key(), t.Key()
	first, second, other := t.subscribe(drv, a), t.subscribe(drv, a), t.subscribe(drv, b)
	t.Do(a, "PUBLISH", a, "text")
	t.Woken(first, "first of the channel")
	t.Woken(second, "second of the channel")
	// Spurious wake-ups are allowed, but not one for each message of every other channel.
	spurious := 0
	for range 20 {
		t.Do(a, "PUBLISH", a, "text")
		t.Woken(first, "again")
		select {
		case <-other.Wake():
			spurious++
		default:
		}
	}
	if spurious > 10 {
		t.Errorf("a listener was woken %d times of 20 by another channel's messages", spurious)
	}
	t.Do(b, "PUBLISH", b, "")
	t.Woken(other, "its own channel")
}

var publishScript = script(`return redis.call('PUBLISH', ARGV[1], '')`)

func countedReceiversAreRight(t *caseT) {
	drv := t.Driver()
	key, channel := t.Key(), t.Key()
	if drv.Delivery(channel) != driver.DeliveryCounted {
		return
	}
	receivers := func() int64 {
		reply, err := drv.Eval(t.Ctx, publishScript, []string{key}, []string{channel})
		t.OK(err, "Eval")
		n, _ := reply.Int(0)
		return n
	}
	if n := receivers(); n != 0 {
		t.Errorf("a message without a subscription has %d receivers, want 0", n)
	}
	sub := t.subscribe(drv, channel)
	if n := receivers(); n != 1 {
		t.Errorf("a message has %d receivers, want 1", n)
	}
	t.Woken(sub, "a script published")
	if got := drv.Delivery(channel); got != driver.DeliveryCounted {
		t.Errorf("Delivery is %d with a subscription, want %d as before", got, driver.DeliveryCounted)
	}
}

func unreadMessagesBlockNobody(t *caseT) {
	drv := t.Driver()
	channel, lastChannel := t.Key(), t.Key()
	idle, last := t.subscribe(drv, channel), t.subscribe(drv, lastChannel)
	for range 300 {
		t.Do(channel, "PUBLISH", channel, "")
	}
	t.Do(lastChannel, "PUBLISH", lastChannel, "")
	t.Woken(last, "behind 300 messages that nobody took")
	t.Woken(idle, "one for all its messages")
}

func reconnectWakes(t *caseT) {
	p, drv := t.Proxied()
	var subs []driver.Subscription
	var channels []string
	for range 3 {
		channel := t.Key()
		channels = append(channels, channel)
		subs = append(subs, t.subscribe(drv, channel))
	}
	for round := range 2 {
		p.CutAll()
		for i, sub := range subs {
			t.Woken(sub, fmt.Sprintf("after cut %d, without a message", round+1))
			// The wake-up may come before the old connection is gone at the server, never before
			// the new one is confirmed.
			t.Eventually("PUBLISH arrives again", func() bool {
				t.Do(channels[i], "PUBLISH", channels[i], "")
				select {
				case <-sub.Wake():
					return true
				default:
					return false
				}
			})
		}
		for i, sub := range subs { // drain wake-ups in flight: the next cut is tested alone
			t.Eventually("one subscriber is left", func() bool { return t.Listeners(channels[i]) == 1 })
			t.Do(channels[i], "PUBLISH", channels[i], "")
			t.Woken(sub, "PUBLISH")
			suite.Drain(sub)
		}
	}
}

func killedSubscriberComesBack(t *caseT) {
	drv, channel := t.Driver(), t.Key()
	sub := t.subscribe(drv, channel)
	if n, _ := t.Do("", "CLIENT", "KILL", "TYPE", "pubsub").(int64); n < 1 {
		t.Fatalf("there was no subscriber to kill")
	}
	t.Woken(sub, "after CLIENT KILL")
	t.Eventually("the subscriber is back", func() bool { return t.Listeners(channel) == 1 })
	suite.Drain(sub)
	t.OK(t.Server.Real.Restart(t.Ctx), "restart the server")
	t.Woken(sub, "after a restart")
	t.Eventually("the subscriber is back", func() bool { return t.Listeners(channel) == 1 })
}

func subscriptionsShareOneConnection(t *caseT) {
	drv := t.Driver()
	var wg sync.WaitGroup
	subs := make([]driver.Subscription, 50)
	for i := range subs {
		wg.Go(func() {
			var err error
			if subs[i], err = drv.Subscribe(t.Ctx, fmt.Sprint("channel", i/2)); err != nil {
				t.Errorf("Subscribe: %v", err)
			}
		})
	}
	wg.Wait()
	defer func() {
		for _, sub := range subs {
			if sub != nil {
				_ = sub.Close() // the case is over
			}
		}
	}()
	list, _ := t.Do("", "CLIENT", "LIST", "TYPE", "pubsub").(string)
	if n := strings.Count(list, "\n"); n != 1 {
		t.Errorf("50 subscriptions to 25 channels use %d connections, want one:\n%s", n, list)
	}
}

func closedSubscriptionIsUnsubscribed(t *caseT) {
	drv, channel := t.Driver(), t.Key()
	first, second := t.subscribe(drv, channel), t.subscribe(drv, channel)
	t.OK(first.Close(), "Close of one listener")
	t.Do(channel, "PUBLISH", channel, "")
	t.Woken(second, "the other listener closed")
	t.OK(second.Close(), "Close of the last listener")
	t.Eventually("nobody is subscribed", func() bool { return t.Listeners(channel) == 0 })
	t.notClosed(first)
	t.notClosed(second)

	again := t.subscribe(drv, channel)
	t.Do(channel, "PUBLISH", channel, "")
	t.Woken(again, "subscribed again")
}

// notClosed demands that the channel of wake-ups is not closed.
func (t *caseT) notClosed(sub driver.Subscription) {
	t.Helper()
	for {
		select {
		case _, open := <-sub.Wake():
			if !open {
				t.Fatalf("Wake's channel was closed: whoever selects on it spins")
			}
		default:
			return
		}
	}
}

func subscribeObeysItsContext(t *caseT) {
	p, drv := t.Proxied()
	channel := t.Key()
	p.Freeze()
	ctx, cancel := context.WithTimeout(t.Ctx, soon)
	defer cancel()
	began := time.Now()
	err := t.Call("Subscribe", func() error {
		sub, err := drv.Subscribe(ctx, channel)
		if err == nil {
			t.Errorf("Subscribe through a frozen connection returned without the server's word")
			return sub.Close()
		}
		return err
	})
	t.Is(err, context.DeadlineExceeded, "Subscribe")
	if took := time.Since(began); took > soon+latency {
		t.Errorf("Subscribe through a frozen connection took %v, want %v", took, soon)
	}
	p.Thaw()
	// An abandoned Subscribe must not disturb the next.
	t.Eventually("Subscribe works again", func() bool {
		sub, err := drv.Subscribe(t.Ctx, channel)
		return err == nil && sub.Close() == nil
	})

	other := t.subscribe(drv, t.Key())
	trap := p.Add(faultproxy.Rule{Match: faultproxy.Command("SUBSCRIBE", channel+"late"),
		Fault: faultproxy.StallRequest})
	cancelled, stop := context.WithCancel(t.Ctx)
	result := suite.Background(func() error { _, err := drv.Subscribe(cancelled, channel+"late"); return err })
	t.Event(trap.Hit(), "SUBSCRIBE is held back")
	stop()
	t.Is(t.Result(result, "cancelled Subscribe"), context.Canceled, "Subscribe")
	trap.Release()
	t.Eventually("the abandoned channel is given up", func() bool { return t.Listeners(channel+"late") == 0 })
	t.notClosed(other)
}

// deaf makes a driver for a user limited to channels that begin with "allowed".
func (t *caseT) deaf() driver.Driver {
	t.Helper()
	return t.Dial(t.User("deaf", "~*", "resetchannels", "&allowed*", "+@all"))
}

func forbiddenChannelDisturbsNobody(t *caseT) {
	drv := t.deaf()
	var allowed []driver.Subscription
	for i := range 5 {
		allowed = append(allowed, t.subscribe(drv, fmt.Sprint("allowed", i)))
	}
	before, _ := t.Do("", "CLIENT", "LIST", "TYPE", "pubsub").(string)
	id, _, _ := strings.Cut(before, " ")
	for range 10 {
		if _, err := drv.Subscribe(t.Ctx, "forbidden"); driver.CodeOf(err) != "NOPERM" {
			t.Errorf("Subscribe to a forbidden channel: %v, want a *driver.ServerError NOPERM", err)
		}
	}
	for i, sub := range allowed {
		suite.Drain(sub)
		channel := fmt.Sprint("allowed", i)
		t.Do("", "PUBLISH", channel, "")
		t.Woken(sub, "its channel is allowed")
	}
	after, _ := t.Do("", "CLIENT", "LIST", "TYPE", "pubsub").(string)
	if !strings.HasPrefix(after, id+" ") || strings.Count(after, "\n") != 1 {
		t.Errorf("the subscriber connection was %q, and is %q after a refusal", before, after)
	}
}

func forbiddenChannelIsAnError(t *caseT) {
	drv := t.deaf()
	allowed := t.subscribe(drv, "allowed")
	sub, err := drv.Subscribe(t.Ctx, "forbidden")
	if sub != nil {
		t.Errorf("Subscribe to a forbidden channel returned a subscription")
	}
	if code := driver.CodeOf(err); code != "NOPERM" {
		t.Errorf("Subscribe to a forbidden channel: %v, want a *driver.ServerError NOPERM", err)
	}
	if !driver.NotExecuted(err) || driver.Transient(err) {
		t.Errorf("%v must say that it will not heal", err)
	}
	t.Eventually("messages of the allowed channel arrive", func() bool {
		t.Do("", "PUBLISH", "allowed", "")
		select {
		case <-allowed.Wake():
			return true
		default:
			return false
		}
	})
	_, err = drv.SetNX(t.Ctx, t.Key(), "v", time.Minute)
	t.OK(err, "SetNX beside")
}
