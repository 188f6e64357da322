package adapter_test

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/driver/adapter"
)

// If the server refuses a probe, the connection is not half open, and the subscription continues:
// a user who may not run SUBSCRIBE any more, and a script that runs for long, do not end it.
func TestHubOutlastsRefusedProbes(t *testing.T) {
	eachKind(t, func(t *testing.T, srv *server, hub *adapter.Hub) {
		a := subscribe(t, hub, "a")
		for _, err := range []error{errBusy, errNoPerm} {
			srv.set(func() { srv.forbid["a"] = err })
			check.Advance(10500 * time.Millisecond)
		}
		wantSent(t, srv.newest(), "+a", "+a", "+a", "+a", "+a")
		wantDials(t, srv, 1)
		wantWakeUps(t, "by a refusal", a, 0)
		srv.newest().publish("a")
		wantWakeUps(t, "a message", a, 1)
		closeSub(t, subscribe(t, hub, "a")) // it joins the subscription
	})
}

// A client that ends the connection after an error reply loses no channel by a refused probe: the
// next connection subscribes again, once the server allows it.
func TestHubReconnectsAfterARefusedProbe(t *testing.T) {
	inBubble(t, func(t *testing.T, srv *server, hub *adapter.Hub) {
		a, b := subscribe(t, hub, "a"), subscribe(t, hub, "b")
		srv.set(func() { srv.forbid["a"], srv.forbid["b"] = errBusy, errBusy })
		check.Advance(8 * time.Second)
		srv.set(func() { clear(srv.forbid) })
		check.Advance(2 * time.Second)
		for channel, sub := range map[string]driver.Subscription{"a": a, "b": b} {
			wantWakeUps(t, "on the new connection", sub, 1)
			srv.newest().publish(channel)
			wantWakeUps(t, "a message", sub, 1)
		}
	})
}

// The answer to a probe does not confirm a later subscription to its channel.
func TestHubSubscribesBehindAProbe(t *testing.T) {
	inBubble(t, func(t *testing.T, srv *server, hub *adapter.Hub) {
		a := subscribe(t, hub, "a")
		srv.set(func() { srv.silent = true })
		check.Advance(6 * time.Second)
		closeSub(t, a)
		again := ask(t.Context(), hub, "a")
		f := srv.newest()
		wantSent(t, f, "+a", "+a", "-a", "+a")
		f.confirm("a")
		check.Advance(time.Second)
		if len(again) != 0 {
			t.Fatal("the answer to the probe passed for that to SUBSCRIBE")
		}
		f.confirm("a")
		got := <-again
		check.OK(t, got.err)
		wantWakeUps(t, "at the confirmation", got.sub, 1)
		srv.set(func() { srv.silent = false })
		check.Advance(time.Minute)
		wantDials(t, srv, 1)
		wantWakeUps(t, "by probes", got.sub, 0)
	})
}

// A hub without listeners sends no probes, and keeps a connection whose last probe is answered late.
func TestHubProbesOnlyForListeners(t *testing.T) {
	inBubble(t, func(t *testing.T, srv *server, hub *adapter.Hub) {
		a := subscribe(t, hub, "a")
		srv.set(func() { srv.silent = true })
		check.Advance(6 * time.Second)
		closeSub(t, a)
		srv.newest().confirm("a")
		check.Advance(time.Minute)
		wantSent(t, srv.newest(), "+a", "+a", "-a")
		srv.set(func() { srv.silent = false })
		closeSub(t, subscribe(t, hub, "b"))
		check.Advance(time.Minute)
		wantSent(t, srv.newest(), "+a", "+a", "-a", "+b", "-b")
		wantDials(t, srv, 1)
	})
}

// A shard's refusal of a probe ends the subscription only if the slot has moved.
func TestShardedProbes(t *testing.T) {
	t.Parallel()
	check.EachInFakeTime(t, map[string]func(t *testing.T, c *shardedCluster, x driver.Subscription){
		"answered": func(t *testing.T, c *shardedCluster, x driver.Subscription) {
			check.Advance(16 * time.Second)
			wantSent(t, c.masters["a"].newest(), "+x", "+x", "+x", "+x")
			check.Equal(t, "wake-ups", wakeUps(x), 0)
			c.want(t, x, "x", "a")
		},
		"refused": func(t *testing.T, c *shardedCluster, x driver.Subscription) {
			for _, err := range []error{errBusy, errNoPerm, serverError("CLUSTERDOWN Hash slot not served")} {
				c.masters["a"].set(func() { c.masters["a"].forbid["x"] = err })
				check.Advance(6 * time.Second)
				check.Equal(t, "wake-ups", wakeUps(x), 0)
				c.want(t, x, "x", "a")
			}
		},
		"moved": func(t *testing.T, c *shardedCluster, x driver.Subscription) {
			c.masters["a"].set(func() { c.masters["a"].forbid["x"] = serverError("MOVED 42 10.0.0.1:7000") })
			check.Advance(5*time.Second + time.Millisecond)
			c.want(t, x, "x", "")
			c.learn("x")
			check.Advance(time.Second)
			c.want(t, x, "x", "b")
		},
		// Messages in between are lost.
		"the slot left and came back": func(t *testing.T, c *shardedCluster, x driver.Subscription) {
			a := c.masters["a"]
			a.set(func() { a.silent = true })
			check.Advance(5*time.Second + time.Millisecond)
			wantSent(t, a.newest(), "+x", "+x")
			a.newest().events <- event{Event: adapter.Event{Kind: adapter.Unsubscribed, Channel: "x"}}
			a.newest().confirm("x")
			wantWakeUps(t, "when the probe has subscribed again", x, 1)
			a.set(func() { a.silent = false })
			c.want(t, x, "x", "a")
		},
	}, func(t *testing.T, run func(t *testing.T, c *shardedCluster, x driver.Subscription)) {
		c := newShardedCluster(t)
		run(t, c, subscribe(t, c.hub, "x"))
		for _, m := range c.masters {
			if n := len(m.dials()); n > 1 {
				t.Errorf("%d connections to one master", n)
			}
		}
	})
}
