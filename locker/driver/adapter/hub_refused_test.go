package adapter_test

import (
	"errors"
	"fmt"
	"strings"
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

// A later connection refuses a confirmed subscription, as after a change of the ACL. Its listeners
// are woken, and the hub asks once a minute until the server allows it.
func TestHubKeepsRefusedSubscriptions(t *testing.T) {
	t.Parallel()
	type test struct {
		client clientKind
		others bool
	}
	check.EachInFakeTime(t, map[string]test{
		"alone, the connection ends":          {endsAtErrors, false},
		"alone, knows the order":              {knowsOrder, false},
		"alone, knows the command":            {knowsCommand, false},
		"beside another, the connection ends": {endsAtErrors, true},
		"beside another, knows the order":     {knowsOrder, true},
		"beside another, knows the command":   {knowsCommand, true},
	}, func(t *testing.T, tt test) {
		srv := newServer(t)
		srv.client = tt.client
		hub := newHub(t, srv)
		a := subscribe(t, hub, "a")
		other := a
		if tt.others {
			other = subscribe(t, hub, "b")
		}
		asked := func() (n int) {
			srv.mu.Lock()
			defer srv.mu.Unlock()
			for _, f := range srv.feeds {
				n += strings.Count(strings.Join(f.sent(), ""), "+a")
			}
			return n
		}
		srv.set(func() { srv.forbid["a"] = errNoPerm })
		srv.newest().hangUp()
		before := asked()
		check.Advance(50 * time.Second)
		check.Equal(t, "SUBSCRIBEs within a minute", asked()-before, 1)
		wantWakeUps(t, "at the refusal", a, 1)
		_, err := hub.Subscribe(t.Context(), "a")
		check.Error(t, "Subscribe", err, errNoPerm)
		if tt.others {
			wakeUps(other)
			srv.newest().publish("b")
			wantWakeUps(t, "another", other, 1)
		}
		before = asked()
		check.Advance(5 * time.Minute)
		check.Within(t, "SUBSCRIBEs in five minutes", asked()-before, 4, 5)
		srv.set(func() { clear(srv.forbid) })
		wakeUps(a)
		check.Advance(2 * time.Minute)
		wantWakeUps(t, "once it is allowed", a, 1)
		srv.newest().publish("a")
		wantWakeUps(t, "a message", a, 1)
		wakeUps(other)
		closeSub(t, subscribe(t, hub, "a"))
		dials := len(srv.dials())
		check.Advance(5 * time.Minute)
		wantDials(t, srv, dials)
		wantWakeUps(t, "by probes", other, 0)
	})
}
