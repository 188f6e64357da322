package adapter_test

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/driver/adapter"
)

func TestHubComesBack(t *testing.T) {
	inBubble(t, func(t *testing.T, srv *server, hub *adapter.Hub) {
		a, b := subscribe(t, hub, "a"), subscribe(t, hub, "b")
		check.Advance(time.Minute)
		first := srv.newest()
		srv.set(func() { srv.refuse = io.ErrUnexpectedEOF })
		first.hangUp()
		down := time.Now()
		check.Advance(3 * time.Second)
		var after []int64 // in ms: pauses of 10 ms, doubling to 1 s
		for _, at := range srv.dialed[1:] {
			after = append(after, at.Sub(down).Milliseconds())
		}
		if want := []int64{10, 30, 70, 150, 310, 630, 1270, 2270}; !slices.Equal(after, want) {
			t.Errorf("dialed %v ms after it broke, want %v", after, want)
		}
		if !first.isClosed() {
			t.Error("the broken connection was not closed")
		}
		wantWakeUps(t, "while it is down", a, 0)
		srv.set(func() { srv.refuse = nil })
		check.Advance(time.Second)
		second := srv.newest()
		if sent := second.sent(); len(sent) != 2 || !slices.Contains(sent, "+a") || !slices.Contains(sent, "+b") {
			t.Errorf("the new connection was sent %q, want +a and +b", sent)
		}
		wantWakeUps(t, "a, subscribed again", a, 1)
		wantWakeUps(t, "b, subscribed again", b, 1)
		second.publish("b")
		wantWakeUps(t, "b, after a message", b, 1)
		check.Error(t, "Close", a.Close())
		synctest.Wait()
		if sent := second.sent(); sent[len(sent)-1] != "-a" {
			t.Errorf("the new connection was sent %q, want -a at the end", sent)
		}
	})
}

// Commands still unwritten when a connection breaks are not written on the next one; it subscribes
// to the channels wanted then.
func TestHubForgetsBlockedWrites(t *testing.T) {
	inBubble(t, func(t *testing.T, srv *server, hub *adapter.Hub) {
		a := subscribe(t, hub, "a")
		srv.set(func() { srv.stall = make(chan struct{}) })
		for _, channel := range []string{"b", "c"} {
			_ = ask(t.Context(), hub, channel)
		}
		srv.set(func() { srv.stall = nil })
		srv.newest().hangUp()
		check.Advance(time.Second)
		wantSent(t, srv.newest(), "+a")
		wantWakeUps(t, "who was there before", a, 1)
	})
}

// A connection to a silent server is replaced within ten seconds, even without a new Subscribe.
func TestHubNoticesAHalfOpenConnection(t *testing.T) {
	inBubble(t, func(t *testing.T, srv *server, hub *adapter.Hub) {
		a := subscribe(t, hub, "a")
		first := srv.newest()
		check.Advance(9 * time.Second)
		wantSent(t, first, "+a", "+a")
		wantWakeUps(t, "by a probe", a, 0)
		srv.set(func() { srv.silent = true })
		check.Advance(4900 * time.Millisecond)
		wantSent(t, first, "+a", "+a", "+a")
		wantDials(t, srv, 1)
		srv.set(func() { srv.silent = false })
		check.Advance(1200 * time.Millisecond)
		wantDials(t, srv, 2)
		wantWakeUps(t, "on the new connection", a, 1)
		check.OK(t, a.Close())
		check.Advance(time.Minute)
		wantSent(t, srv.newest(), "+a", "-a")
	})
}

// Hubs that connect together, as after a restart of the server, do not probe together.
func TestHubsProbeApart(t *testing.T) {
	check.InFakeTime(t, func(t *testing.T) {
		srv := newServer(t)
		for range 100 {
			subscribe(t, newHub(t, srv), "a")
		}
		check.Advance(4750 * time.Millisecond)
		probes := 0
		for _, f := range srv.feeds {
			probes += len(f.sent()) - 1
		}
		if probes < 10 || probes > 90 {
			t.Errorf("%d of 100 hubs have probed after 4.75 s, want about half of them", probes)
		}
	})
}

// A server that hangs up, as one with too many clients does, is not dialed every 10 ms; nor is a
// proxy of a dead server, which hangs up a round trip later. Connections that break every 40 ms are
// replaced soon: a waiter has no place in a strict order meanwhile.
func TestHubPauses(t *testing.T) {
	t.Parallel()
	type test struct {
		silent      bool
		lasts       time.Duration
		least, most int // connections in 10 s; the pauses double to 1 s, or are 10 ms
	}
	check.EachInFakeTime(t, map[string]test{
		"hangs up":            {true, 0, 10, 20},
		"hangs up with delay": {true, 50 * time.Millisecond, 10, 20},
		"lasts for a while":   {false, 40 * time.Millisecond, 200, 202},
	}, func(t *testing.T, tt test) {
		srv := newServer(t)
		hub := newHub(t, srv)
		subscribe(t, hub, "a")
		srv.set(func() { srv.fragile, srv.silent, srv.lasts = true, tt.silent, tt.lasts })
		srv.newest().hangUp()
		check.Advance(10 * time.Second)
		check.Within(t, "connections in 10 s", len(srv.dials()), tt.least, tt.most)
		srv.set(func() { srv.fragile, srv.silent = false, false })
		check.Advance(time.Minute)
		before := len(srv.dials())
		srv.newest().hangUp()
		check.Advance(10 * time.Millisecond)
		check.Equal(t, "connections 10 ms after one that lasted broke", len(srv.dials())-before, 1)
	})
}

var errNoPerm error = adapter.NewServerError("NOPERM this user has no permissions to access one of the channels", io.EOF)

func TestHubRefusedChannel(t *testing.T) {
	inBubble(t, func(t *testing.T, srv *server, hub *adapter.Hub) {
		a := subscribe(t, hub, "a")
		srv.set(func() { srv.forbid["b"] = errNoPerm })
		for range 3 {
			_, err := hub.Subscribe(t.Context(), "b")
			check.Error(t, "Subscribe", err, errNoPerm)
			if driver.CodeOf(err) != "NOPERM" {
				t.Errorf("Subscribe: %v, want the server's error", err)
			}
			check.Advance(2 * time.Second)
			wantWakeUps(t, "who was there before", a, 1)
		}
		srv.newest().publish("a")
		wantWakeUps(t, "who was there before", a, 1)
		wantSent(t, srv.newest(), "+a")
		srv.set(func() { clear(srv.forbid) })
		subscribe(t, hub, "b")
	})
}

func TestHubCannotConnect(t *testing.T) {
	inBubble(t, func(t *testing.T, srv *server, hub *adapter.Hub) {
		srv.refuse = io.ErrUnexpectedEOF
		for range 2 {
			_, err := hub.Subscribe(t.Context(), "a")
			check.Error(t, "Subscribe", err, driver.ErrNotSent, io.ErrUnexpectedEOF)
		}
		check.Advance(time.Minute)
		wantDials(t, srv, 2)
		srv.set(func() { srv.refuse = errors.ErrUnsupported })
		_, err := hub.Subscribe(t.Context(), "a")
		check.Error(t, "Subscribe where there is none", err, errors.ErrUnsupported)
		srv.set(func() { srv.refuse = nil })
		subscribe(t, hub, "a")
	})
}

// While the connection is down, a new Subscribe gets the error of the next attempt to connect.
func TestHubSubscribeWhileDown(t *testing.T) {
	inBubble(t, func(t *testing.T, srv *server, hub *adapter.Hub) {
		a := subscribe(t, hub, "a")
		srv.set(func() { srv.refuse = io.ErrUnexpectedEOF })
		srv.newest().hangUp()
		check.Advance(5 * time.Second)
		start := time.Now()
		got := <-ask(t.Context(), hub, "b")
		check.Error(t, "Subscribe", got.err, io.ErrUnexpectedEOF)
		if after := got.at.Sub(start); after > time.Second {
			t.Errorf("Subscribe took %v, want the second of the pause at most", after)
		}
		answer := ask(t.Context(), hub, "b")
		srv.set(func() { srv.refuse = nil })
		if got := <-answer; got.err != nil {
			t.Errorf("Subscribe that saw the connection come back: %v", got.err)
		}
		wantWakeUps(t, "who was there before", a, 1)
	})
}

// A connection is kept as long as the server confirms, however slowly, and replaced once it stops.
func TestHubBearsSlowConfirmations(t *testing.T) {
	inBubble(t, func(t *testing.T, srv *server, hub *adapter.Hub) {
		subscribe(t, hub, "first")
		srv.set(func() { srv.silent = true })
		channels := []string{"a", "b", "c", "d"}
		for _, channel := range channels {
			_ = ask(t.Context(), hub, channel)
		}
		feed := srv.newest()
		for _, channel := range channels[:3] {
			check.Advance(4 * time.Second)
			feed.confirm(channel)
		}
		check.Advance(4900 * time.Millisecond)
		if feed.isClosed() {
			t.Fatal("a connection was given up that confirms one SUBSCRIBE every 4 s")
		}
		last := ask(t.Context(), hub, "e")
		srv.set(func() { srv.silent = false }) // the next one is well
		check.Advance(200 * time.Millisecond)
		if !feed.isClosed() {
			t.Error("a connection that has stopped to confirm was not given up after 5 s")
		}
		if err := (<-last).err; err == nil || !strings.Contains(err.Error(), "no SUBSCRIBE was confirmed for 5s") {
			t.Errorf("who waited for it was told: %v", err)
		}
	})
}

// A refused probe does not mean a half-open connection, and the subscription continues: a user who
// lost SUBSCRIBE, or a long script, does not end it.
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

// If a client ends the connection after a refused probe, no channel is lost: the next connection
// subscribes again, once the server allows it.
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

// A hub without listeners sends no probes, and keeps a connection whose last probe is answered
// late.
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
			a.newest().events <- event{Event: adapter.Event{Kind: "unsubscribe", Channel: "x"}}
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
