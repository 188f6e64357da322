package adapter_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/locker/driver"
)

// The refusal of one channel is not reported to concurrent callers that subscribe to another.
func TestHubRefusesOneChannelAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := newServer(t)
		srv.forbid["bad"] = serverError("NOPERM this user has no permissions to access one of the channels")
		hub := newHub(t, srv)
		srv.mu.Lock()
		srv.stall = make(chan struct{})
		stall := srv.stall
		srv.mu.Unlock()
		var wg sync.WaitGroup
		for _, ch := range []string{"bad", "good"} {
			wg.Go(func() {
				sub, err := hub.Subscribe(t.Context(), ch)
				if refused := driver.CodeOf(err) == "NOPERM"; refused != (ch == "bad") {
					t.Errorf("%s: %v", ch, err)
				}
				if sub != nil {
					_ = sub.Close()
				}
			})
			time.Sleep(time.Millisecond) //nolint:forbidigo // fake time
		}
		synctest.Wait()
		close(stall)
		wg.Wait()
	})
}

// A connection on which nothing is confirmed is replaced, also if it worked before.
func TestHubReplacesAHalfOpenConnection(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := newServer(t)
		hub := newHub(t, srv)
		sub, err := hub.Subscribe(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		defer sub.Close()
		srv.mu.Lock()
		srv.silent = true // the connection is half open from here
		srv.mu.Unlock()
		for i := range 200 {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			_, err := hub.Subscribe(ctx, "b")
			cancel()
			srv.mu.Lock()
			n := len(srv.dialed)
			srv.mu.Unlock()
			if n > 1 {
				return
			}
			if i == 199 {
				t.Errorf("after 1000 s of unconfirmed SUBSCRIBEs still connection 1: %v", err)
			}
		}
	})
}

// A connection is kept as long as the server confirms, however slowly, and replaced once it stops.
func TestHubBearsSlowConfirmations(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := newServer(t)
		hub := newHub(t, srv)
		defer subscribe(t, hub, "first").Close()
		srv.set(func() { srv.silent = true })
		channels := []string{"a", "b", "c", "d"}
		var wg sync.WaitGroup
		for _, channel := range channels {
			wg.Go(func() {
				if sub, err := hub.Subscribe(t.Context(), channel); err == nil {
					_ = sub.Close()
				}
			})
		}
		synctest.Wait()
		feed := srv.newest()
		for _, channel := range channels[:3] {
			advance(4 * time.Second)
			feed.confirm(channel)
		}
		advance(4900 * time.Millisecond)
		if feed.isClosed() {
			t.Fatal("a connection was given up that confirms one SUBSCRIBE every 4 s")
		}
		last := ask(t.Context(), hub, "e")
		srv.set(func() { srv.silent = false }) // the next one is well
		advance(200 * time.Millisecond)
		if !feed.isClosed() {
			t.Error("a connection that has stopped to confirm was not given up after 5 s")
		}
		if err := (<-last).err; err == nil || !strings.Contains(err.Error(), "no SUBSCRIBE was confirmed for 5s") {
			t.Errorf("who waited for it was told: %v", err)
		}
		wg.Wait()
	})
}
