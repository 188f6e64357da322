package goredis_test

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/providers/goredis"
)

// A cluster with unreachable nodes delays no caller, first or later, beyond its ctx. Nor does one
// whose nodes have refused the client before.
func TestUnreachedCluster(t *testing.T) {
	check.EachInFakeTime(t, map[string]bool{"unreachable": false, "refuses first": true}, func(t *testing.T, refuses bool) {
		f := &fake{answer: func([]string) string { return "-WRONGPASS invalid username-password pair\r\n" }}
		client := redis.NewClusterClient(&redis.ClusterOptions{
			Addrs: []string{"10.0.0.1:6379", "10.0.0.2:6379"}, ContextTimeoutEnabled: true, Password: "x",
			Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
				if refuses {
					return f.dial(ctx, network, addr)
				}
				check.Advance(5 * time.Second) // a dialer that does not obey its ctx
				return nil, net.ErrClosed
			},
		})
		drv := locker.Must(goredis.New(client))
		for range 4 {
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			start := time.Now()
			_, err := drv.SetNX(ctx, "k", "v", time.Second)
			cancel()
			check.Error(t, "SetNX", err, driver.ErrNotSent)
			check.AtMost(t, "SetNX", time.Since(start), 200*time.Millisecond)
			start = time.Now()
			drv.Server("k")
			check.Took(t, "Server", start, 0)
			check.Advance(time.Minute)
			refuses = false
		}
		check.OK(t, drv.Close())
		check.OK(t, client.Close())
		check.Advance(time.Minute)
	})
}

// Commands whose callers leave while the client dials a node make it ask for the nodes anew: another
// may have the slots by now.
func TestHangingDialReloadsState(t *testing.T) {
	t.Parallel()
	clients.Bubble(t, func(t *testing.T) {
		var asked atomic.Int32
		drv := newDriver(t, redis.NewClusterClient(&redis.ClusterOptions{
			Addrs: []string{"192.0.2.1:6379"}, DialTimeout: 5 * patience,
			Dialer: func(ctx context.Context, _, _ string) (net.Conn, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			},
			ClusterSlots: func(context.Context) ([]redis.ClusterSlot, error) {
				asked.Add(1)
				return []redis.ClusterSlot{{End: 16383, Nodes: []redis.ClusterNode{{Addr: "192.0.2.1:6379"}}}}, nil
			},
		}))
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		check.Error(t, "the calls", evals(ctx, drv), driver.ErrNotSent)
		check.Advance(patience / 2) // the first command went by itself, and is given up a second after its deadline
		check.AtLeast(t, "CLUSTER SLOTS", asked.Load(), 2)
	})
}
