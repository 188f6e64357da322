package adapter_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker/driver/adapter"
)

var (
	errNoUnsubscribe error = adapter.NewServerError("NOPERM this user has no permissions to run the 'unsubscribe' command", errors.New("below"))
	errBusy          error = adapter.NewServerError("BUSY Redis is busy running a script.", errors.New("below"))
)

// eachKind runs a test of a Hub for each kind of client that keeps a connection after an error.
func eachKind(t *testing.T, f func(t *testing.T, srv *server, hub *adapter.Hub)) {
	t.Parallel()
	kinds := map[string]clientKind{"knows the order": knowsOrder, "knows the command": knowsCommand}
	check.EachInFakeTime(t, kinds, func(t *testing.T, kind clientKind) {
		srv := newServer(t)
		srv.client = kind
		f(t, srv, newHub(t, srv))
	})
}

// A refused channel costs one SUBSCRIBE a minute, and does not affect other channels.
func TestHubRemembersRefusedChannels(t *testing.T) {
	eachKind(t, func(t *testing.T, srv *server, hub *adapter.Hub) {
		_ = subscribe(t, hub, "given up").Close() // its answer must not be taken for another's
		a := subscribe(t, hub, "a")
		srv.set(func() { srv.forbid["bad"] = errNoPerm })
		for range 100 {
			_, err := hub.Subscribe(t.Context(), "bad")
			check.Error(t, "Subscribe to a forbidden channel", err, errNoPerm)
			check.Advance(40 * time.Millisecond)
		}
		subscribe(t, hub, "b")
		f := srv.newest()
		wantSent(t, f, "+given up", "-given up", "+a", "+bad", "+b")
		wantWakeUps(t, "another", a, 0)
		f.publish("a")
		wantWakeUps(t, "another", a, 1)
		srv.set(func() { clear(srv.forbid) })
		check.Advance(time.Minute)
		subscribe(t, hub, "bad")
		wantDials(t, srv, 1)
	})
}

// Commands in flight together each get their own answer.
func TestHubTellsRefusalsApart(t *testing.T) {
	eachKind(t, func(t *testing.T, srv *server, hub *adapter.Hub) {
		sub := subscribe(t, hub, "left")
		srv.set(func() {
			srv.forbid["bad"], srv.forbid["worse"], srv.forbidUn = errNoPerm, errNoPerm, errNoUnsubscribe
			srv.stall = make(chan struct{})
		})
		var answers []<-chan asked
		for _, channel := range []string{"a", "bad", "b"} {
			answers = append(answers, ask(t.Context(), hub, channel))
		}
		_ = sub.Close()
		for _, channel := range []string{"c", "worse", "d"} {
			answers = append(answers, ask(t.Context(), hub, channel))
		}
		close(srv.stall)
		for i, want := range []error{nil, errNoPerm, nil, nil, errNoPerm, nil} {
			if got := <-answers[i]; !errors.Is(got.err, want) || (got.sub == nil) != (want != nil) {
				t.Errorf("Subscribe %d: %v, %v; want %v", i, got.sub, got.err, want)
			}
		}
		wantDials(t, srv, 1)
	})
}

// A transient refusal is not remembered. After it, a confirmed subscription is restored.
func TestHubForgetsPassingRefusals(t *testing.T) {
	eachKind(t, func(t *testing.T, srv *server, hub *adapter.Hub) {
		a := subscribe(t, hub, "a")
		srv.set(func() { srv.forbid["b"] = errBusy })
		for range 2 {
			_, err := hub.Subscribe(t.Context(), "b")
			check.Error(t, "Subscribe", err, errBusy)
		}
		wantSent(t, srv.newest(), "+a", "+b", "+b")
		srv.set(func() { srv.forbid["a"] = errBusy })
		srv.newest().hangUp()
		check.Advance(time.Second)
		srv.set(func() { clear(srv.forbid) })
		check.Advance(2 * time.Second)
		wantWakeUps(t, "who was there before", a, 1)
		srv.newest().publish("a")
		wantWakeUps(t, "who was there before", a, 1)
		subscribe(t, hub, "b")
	})
}

// If the server refuses UNSUBSCRIBE, a connection keeps channels without listeners, up to a limit.
func TestHubLeavesSubscriptionsBehind(t *testing.T) {
	eachKind(t, func(t *testing.T, srv *server, hub *adapter.Hub) {
		srv.set(func() { srv.forbidUn = errNoUnsubscribe })
		a := subscribe(t, hub, "a")
		for i := range 999 {
			_ = subscribe(t, hub, fmt.Sprint(i)).Close()
		}
		synctest.Wait()
		wantWakeUps(t, "who stays", a, 0)
		wantDials(t, srv, 1)
		_ = subscribe(t, hub, "last").Close()
		check.Advance(time.Second)
		wantWakeUps(t, "who stays", a, 1)
		wantSent(t, srv.newest(), "+a")
		wantDials(t, srv, 2)
	})
}
