package adapter_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/driver/adapter"
)

// Everything at once, on the real clock, for the race detector: subscriptions come and go, contexts
// end, messages arrive, connections break, the hub closes. Nothing hangs, panics, or leaks.
func TestHubAllAtOnce(t *testing.T) {
	t.Parallel()
	for round := range 20 {
		srv := newServer(t)
		hub := adapter.NewHub(srv.open)
		var workers, noise sync.WaitGroup
		quiet := make(chan struct{})
		noise.Go(func() {
			for {
				select {
				case <-quiet:
					return
				case <-time.After(time.Duration(rand.IntN(2000)) * time.Microsecond):
					disturb(srv)
				}
			}
		})
		for w := range 6 {
			workers.Go(func() {
				for range 40 {
					comeAndGo(t, hub, string(rune('a'+rand.IntN(3))))
				}
				if w == 0 && round%2 == 0 { // the others are in the middle
					_ = hub.Close()
				}
			})
		}
		workers.Wait()
		close(quiet)
		noise.Wait()
		closeHub(t, hub)
		for _, f := range srv.feeds {
			if !f.isClosed() {
				t.Error("a connection is open after Close")
			}
		}
	}
}

// disturb sends a message, or hangs up.
func disturb(srv *server) {
	srv.mu.Lock()
	feeds := srv.feeds
	srv.mu.Unlock()
	if len(feeds) == 0 {
		return
	}
	f := feeds[len(feeds)-1]
	if rand.IntN(4) > 0 {
		f.publish("a")
	} else if !f.isClosed() {
		f.hangUp()
	}
}

func comeAndGo(t *testing.T, hub *adapter.Hub, channel string) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rand.IntN(3000))*time.Microsecond)
	defer cancel()
	sub, err := hub.Subscribe(ctx, channel)
	if (sub == nil) != (err != nil) {
		t.Errorf("Subscribe: %v, %v", sub, err)
	}
	if err != nil {
		if !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, net.ErrClosed) && !errors.Is(err, driver.ErrClosed) {
			t.Errorf("Subscribe: %v", err)
		}
		return
	}
	select {
	case <-sub.Wake():
	case <-ctx.Done():
	}
	_ = sub.Close()
}
