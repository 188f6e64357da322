//realtime:ok in the bubble of clients

package rueidis_test

import (
	"context"
	"net"
	"testing"
	"time"

	miniserver "github.com/alicebob/miniredis/v2/server"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/locker/driver"
)

// A MOVED loop ends soon after its callers have left.
func TestClusterMovesForever(t *testing.T) {
	t.Parallel()
	clients.Bubble(t, func(t *testing.T) {
		m, p := clients.Proxied(t)
		opts := single(func(ctx context.Context, network, _ string) (net.Conn, error) {
			return m.Net.Dial(ctx, network, p.Addr()) // all nodes are one
		}, p.Addr())
		opts.ForceSingleClient = false
		drv := dial(t, opts)
		answered(t, drv, 1)
		p.Latency(10 * time.Millisecond)
		m.Server().SetPreHook(func(c *miniserver.Peer, command string, _ ...string) bool {
			if command != "SET" {
				return false
			}
			c.WriteError("MOVED 42 127.0.0.1:2")
			return true
		})
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		began := time.Now()
		for _, err := range workers(ctx, drv, 30, 1, "moved") {
			check.Is(t, err, context.DeadlineExceeded)
			if driver.NotExecuted(err) {
				t.Errorf("%v, want an unknown outcome: the next node may execute the command", err)
			}
		}
		check.Took(t, "the calls", began, patience)
		check.Advance(2 * time.Second)
		before := p.Sent("moved")
		check.Advance(time.Minute)
		check.Equal(t, "commands sent after the callers left", p.Sent("moved")-before, 0)
	})
}
