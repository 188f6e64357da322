package adapter_test

import (
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/driver/adapter"
)

// The refusal of one channel is not reported to concurrent callers that subscribe to another.
func TestHubRefusesOneChannelAlone(t *testing.T) {
	inBubble(t, func(t *testing.T, srv *server, hub *adapter.Hub) {
		stall := make(chan struct{})
		srv.set(func() { srv.forbid["bad"], srv.stall = errNoPerm, stall })
		bad, good := ask(t.Context(), hub, "bad"), ask(t.Context(), hub, "good")
		close(stall)
		if err := (<-bad).err; driver.CodeOf(err) != "NOPERM" {
			t.Errorf("the forbidden channel: %v", err)
		}
		if err := (<-good).err; err != nil {
			t.Errorf("another channel: %v", err)
		}
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
	})
}
