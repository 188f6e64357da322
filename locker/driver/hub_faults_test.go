package driver_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/locker/driver"
)

// The refusal of one channel is not told to those who ask for another at the same time.
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

// A connection that confirms nothing is replaced, also where it was good before.
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
