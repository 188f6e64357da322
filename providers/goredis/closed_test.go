//realtime:ok in the bubbles of clients

package goredis_test

import (
	"context"
	"errors"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/bounded"
	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/locker/driver"
)

// While a Ring or a cluster client is open, a node closed under a command is a transient failure.
// Once the client itself is closed, the failure is permanent.
func TestClosedNodeIsNotAClosedClient(t *testing.T) {
	t.Parallel()
	check.Each(t, map[string]func(o *redis.Options) (client redis.UniversalClient, closeNode func() error){
		"ring": func(o *redis.Options) (redis.UniversalClient, func() error) {
			c := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": o.Addr}, Dialer: o.Dialer})
			return c, func() error {
				node, err := c.GetShardClientForKey("k")
				return errors.Join(err, node.Close())
			}
		},
		"cluster": func(o *redis.Options) (redis.UniversalClient, func() error) {
			c := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{o.Addr}, Dialer: o.Dialer,
				ClusterSlots: func(context.Context) ([]redis.ClusterSlot, error) {
					return []redis.ClusterSlot{
						{End: 8191, Nodes: []redis.ClusterNode{{Addr: o.Addr}}},
						{Start: 8192, End: 16383, Nodes: []redis.ClusterNode{{Addr: "192.0.2.2:6379"}}},
					}, nil
				}})
			return c, func() error {
				node, err := c.MasterForKey(context.Background(), "k")
				return errors.Join(err, node.Close())
			}
		},
	}, func(t *testing.T, open func(o *redis.Options) (client redis.UniversalClient, closeNode func() error)) {
		clients.Bubble(t, func(t *testing.T) {
			client, closeNode := open((&fake{answer: func([]string) string { return "+OK\r\n" }}).options())
			drv := newDriver(t, client)
			if _, err := drv.SetNX(t.Context(), "k", "v", patience); err != nil {
				t.Fatal(err)
			}
			check.Must(t, closeNode())
			refused := func(what string, transient bool) {
				for name, operation := range operations {
					if name == "Subscribe" {
						continue
					}
					ctx := bounded.New(t.Context(), patience)
					err := operation(ctx, drv)
					ctx.Stop()
					if !errors.Is(err, redis.ErrClosed) || !errors.Is(err, driver.ErrNotSent) || driver.Transient(err) != transient {
						t.Errorf("%s, %s: %v, transient: %t, want %t", what, name, err, driver.Transient(err), transient)
					}
				}
			}
			refused("closed node", true)
			if err := client.Close(); err != nil && !errors.Is(err, redis.ErrClosed) {
				t.Fatal(err)
			}
			refused("closed client", false)
		})
	})
}
