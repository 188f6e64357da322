package adapter_test

import (
	"context"
	"errors"
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

// A confirmation for a subscription that was given up does not confirm the next one for the same
// channel.
func TestHubStaleConfirmation(t *testing.T) {
	inBubble(t, func(t *testing.T, srv *server, hub *adapter.Hub) {
		srv.silent = true
		ctx, cancel := context.WithCancel(t.Context())
		old := ask(ctx, hub, "a")
		cancel()
		check.Error(t, "Subscribe given up", (<-old).err, context.Canceled)
		f := srv.newest()
		answer := ask(t.Context(), hub, "a")
		wantSent(t, f, "+a", "-a", "+a")
		f.confirm("a")
		f.publish("a")
		synctest.Wait()
		if len(answer) != 0 {
			t.Fatal("the confirmation of the first SUBSCRIBE passed for that of the second")
		}
		f.confirm("a")
		got := <-answer
		if got.err != nil {
			t.Fatalf("Subscribe: %v", got.err)
		}
		wakeUps(got.sub)
		f.publish("a")
		wantWakeUps(t, "a message", got.sub, 1)
	})
}

func TestHubSubscribeObeysItsContext(t *testing.T) {
	inBubble(t, func(t *testing.T, srv *server, hub *adapter.Hub) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := hub.Subscribe(ctx, "a")
		check.Error(t, "Subscribe under an ended ctx", err, driver.ErrNotSent, context.Canceled)
		if len(srv.dials()) != 0 {
			t.Error("it opened a connection")
		}

		srv.silent = true
		ctx, cancel = context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		given, kept := ask(ctx, hub, "a"), ask(t.Context(), hub, "a")
		got := <-given
		check.Error(t, "Subscribe", got.err, context.DeadlineExceeded)
		if after := got.at.Sub(start); after != time.Second || errors.Is(got.err, driver.ErrNotSent) || got.sub != nil {
			t.Errorf("Subscribe: %v, %v after %v; want the ctx's error after 1s", got.sub, got.err, after)
		}
		wantSent(t, srv.newest(), "+a") // the other still waits for it
		srv.newest().confirm("a")
		if got := <-kept; got.err != nil {
			t.Errorf("the other's Subscribe: %v", got.err)
		}
	})
}
