package adapter_test

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/driver/adapter"
)

// inBubble runs a test of a Hub with fake time.
func inBubble(t *testing.T, f func(t *testing.T, srv *server, hub *adapter.Hub)) {
	check.InFakeTime(t, func(t *testing.T) {
		srv := newServer(t)
		f(t, srv, newHub(t, srv))
	})
}

func wantSent(t *testing.T, f *feed, want ...string) {
	t.Helper()
	synctest.Wait()
	check.EqualSlices(t, "sent on the connection", f.sent(), want)
}

func wantDials(t *testing.T, srv *server, want int) {
	t.Helper()
	check.Equal(t, "connections tried", len(srv.dials()), want)
}

func closeHub(t *testing.T, hub *adapter.Hub) {
	t.Helper()
	check.Error(t, "Close", hub.Close())
}

func wantWakeUps(t *testing.T, what string, sub driver.Subscription, want int) {
	t.Helper()
	synctest.Wait()
	check.Equal(t, what+": wake-ups", wakeUps(sub), want)
}

func TestHubWakesAtTheConfirmation(t *testing.T) {
	inBubble(t, func(t *testing.T, srv *server, hub *adapter.Hub) {
		srv.silent = true
		first := ask(t.Context(), hub, "a")
		second := ask(t.Context(), hub, "a")
		f := srv.newest()
		f.publish("a") // left from another subscription: proves nothing
		f.confirm("b")
		synctest.Wait()
		if len(first)+len(second) != 0 {
			t.Error("Subscribe returned before the confirmation")
		}
		f.confirm("a")
		for _, answer := range []<-chan asked{first, second} {
			got := <-answer
			if got.err != nil {
				t.Fatalf("Subscribe: %v", got.err)
			}
			wantWakeUps(t, "at the confirmation", got.sub, 1)
		}
		third := subscribe(t, hub, "a") // needs no other
		wantSent(t, f, "+a")
		f.confirm("a") // a client that subscribes again by itself
		wantWakeUps(t, "at an unexpected confirmation", third, 1)
	})
}

func TestHubCloseWhileDown(t *testing.T) {
	inBubble(t, func(t *testing.T, srv *server, hub *adapter.Hub) {
		subscribe(t, hub, "a")
		srv.set(func() { srv.refuse = io.ErrUnexpectedEOF })
		srv.newest().hangUp()
		check.Advance(10*time.Second + time.Millisecond)
		start := time.Now()
		closeHub(t, hub)
		check.Took(t, "Close, without the next attempt,", start, 0)
	})
}

func TestHubCloseWhileDialing(t *testing.T) {
	t.Parallel()
	check.EachInFakeTime(t, map[string]func(ctx context.Context, srv *server) (adapter.Feed, error){
		"gives up": func(ctx context.Context, _ *server) (adapter.Feed, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		},
		"comes too late": func(ctx context.Context, srv *server) (adapter.Feed, error) {
			<-ctx.Done()
			return srv.open(context.WithoutCancel(ctx))
		},
	}, func(t *testing.T, open func(ctx context.Context, srv *server) (adapter.Feed, error)) {
		srv := newServer(t)
		hub := adapter.NewHub(func(ctx context.Context) (adapter.Feed, error) { return open(ctx, srv) }, nil)
		answer := ask(t.Context(), hub, "a")
		closeHub(t, hub)
		check.Error(t, "Subscribe", (<-answer).err, driver.ErrClosed)
		for _, f := range srv.feeds {
			if !f.isClosed() {
				t.Error("a connection that came too late is open")
			}
		}
	})
}

func TestHubDialIsBounded(t *testing.T) {
	check.InFakeTime(t, func(t *testing.T) {
		hub := adapter.NewHub(func(ctx context.Context) (adapter.Feed, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}, nil)
		start := time.Now()
		_, err := hub.Subscribe(t.Context(), "a")
		check.Error(t, "Subscribe", err, context.DeadlineExceeded, driver.ErrNotSent)
		check.Took(t, "dialing", start, 5*time.Second)
		closeHub(t, hub)
	})
}

// A frozen server stops accepting bytes at some point. Only callers that need its answer wait.
func TestHubBlockedWrite(t *testing.T) {
	inBubble(t, func(t *testing.T, srv *server, hub *adapter.Hub) {
		a := subscribe(t, hub, "a")
		stall := make(chan struct{})
		srv.set(func() { srv.stall = stall })
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		first, second := ask(ctx, hub, "b"), ask(ctx, hub, "c")
		for _, answer := range []<-chan asked{first, second} {
			if got := <-answer; !errors.Is(got.err, context.DeadlineExceeded) || got.at.Sub(start) != time.Second {
				t.Errorf("Subscribe: %v after %v, want the end of ctx after 1s", got.err, got.at.Sub(start))
			}
		}
		srv.newest().publish("a")
		wantWakeUps(t, "a message behind a blocked write", a, 1)
		if err := a.Close(); err != nil || time.Since(start) != time.Second {
			t.Errorf("Close of a subscription: %v after %v", err, time.Since(start))
		}
		srv.set(func() { srv.stall = nil })
		close(stall)
		synctest.Wait()
		sent := srv.newest().sent()
		if slices.Sort(sent[3:5]); !slices.Equal(sent, []string{"+a", "+b", "+c", "-b", "-c", "-a"}) {
			t.Errorf("once it thawed, the connection was sent %q, want everything in order", sent)
		}

		srv.set(func() { srv.stall = make(chan struct{}) })
		tries := srv.newest().tries.Load()
		for _, channel := range []string{"d", "e", "f"} {
			_ = ask(t.Context(), hub, channel)
		}
		if err := hub.Close(); err != nil || time.Since(start) != time.Second {
			t.Errorf("Close of the hub: %v after %v", err, time.Since(start))
		}
		check.Equal(t, "commands tried", srv.newest().tries.Load()-tries, 1)
	})
}

// A failed write means a broken connection, whether or not Next fails too, and whether the client
// or the hub closes the connection. Callers get the reason for the failed write, not the closing.
func TestHubFailedWrite(t *testing.T) {
	t.Parallel()
	closers := map[string]bool{"the hub closes": false, "the client closes": true}
	check.EachInFakeTime(t, closers, func(t *testing.T, closesItself bool) {
		srv := newServer(t)
		hub := newHub(t, srv)
		a := subscribe(t, hub, "a")
		srv.set(func() { srv.writeErr, srv.hasty = io.ErrShortWrite, closesItself })
		broken := srv.newest()
		got := <-ask(t.Context(), hub, "b")
		check.Error(t, "Subscribe", got.err, io.ErrShortWrite)
		if !broken.isClosed() {
			t.Error("the connection was not closed")
		}
		srv.set(func() { srv.writeErr = nil })
		check.Advance(time.Second)
		wantWakeUps(t, "who was there before", a, 1)
		subscribe(t, hub, "b")
		srv.newest().hangUp() // the failure of the connection before is over
		srv.set(func() { srv.silent = true })
		check.Advance(20 * time.Millisecond)
		waiting := ask(t.Context(), hub, "c")
		srv.newest().hangUp()
		check.Error(t, "Subscribe on the next connection", (<-waiting).err, net.ErrClosed)
	})
}

// The error of a write ended by the hub's own Close is not reported as the cause.
func TestHubTellsNotOfItsOwnClosing(t *testing.T) {
	inBubble(t, func(t *testing.T, srv *server, hub *adapter.Hub) {
		subscribe(t, hub, "a")
		srv.set(func() { srv.stall = make(chan struct{}) })
		waiting := ask(t.Context(), hub, "b")
		srv.set(func() { srv.stall = nil })
		srv.newest().hangUp()
		check.Error(t, "Subscribe", (<-waiting).err, net.ErrClosed)
	})
}

// Messages of other kinds do no harm: "pmessage" and the like, and what a Feed does not know.
func TestHubIgnoresOtherKinds(t *testing.T) {
	inBubble(t, func(t *testing.T, srv *server, hub *adapter.Hub) {
		sub := subscribe(t, hub, "a")
		f := srv.newest()
		for _, kind := range []string{"psubscribe", "pmessage", "pong", "Message", ""} {
			f.events <- event{Event: adapter.Event{Kind: kind, Channel: "a"}}
		}
		wantWakeUps(t, "at messages of other kinds", sub, 0)
		f.publish("a")
		wantWakeUps(t, "at a message", sub, 1)
		wantDials(t, srv, 1)
	})
}
