package goredis_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/locker/driver"
)

// While a Ring or a cluster client is open, one of its nodes may be closed under a command. That
// passes. Once the client itself is closed, nothing passes.
func TestClosedNodeIsNotAClosedClient(t *testing.T) {
	t.Parallel()
	for kind, open := range map[string]func(t *testing.T) (client redis.UniversalClient, closeNode func() error){
		"ring": func(t *testing.T) (redis.UniversalClient, func() error) {
			srv := redistest.Start(t, redistest.Options{})
			c := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": srv.Addr()}})
			return c, func() error {
				node, err := c.GetShardClientForKey("k")
				return errors.Join(err, node.Close())
			}
		},
		"cluster": func(t *testing.T) (redis.UniversalClient, func() error) {
			c := redis.NewClusterClient(&redis.ClusterOptions{Addrs: redistest.StartCluster(t, 3, redistest.Options{}).Addrs()})
			return c, func() error {
				node, err := c.MasterForKey(context.Background(), "k")
				return errors.Join(err, node.Close())
			}
		},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			client, closeNode := open(t)
			drv := newDriver(t, client)
			if _, err := drv.SetNX(t.Context(), "k", "v", time.Minute); err != nil {
				t.Fatal(err)
			}
			if err := closeNode(); err != nil {
				t.Fatal(err)
			}
			check := func(what string, transient bool) {
				for name, operation := range operations {
					if name == "Subscribe" {
						continue
					}
					ctx := driver.Bound(t.Context(), time.Minute)
					err := operation(ctx, drv)
					ctx.Stop()
					if !errors.Is(err, redis.ErrClosed) || !errors.Is(err, driver.ErrNotSent) || driver.Transient(err) != transient {
						t.Errorf("%s, %s: %v, transient: %t, want %t", what, name, err, driver.Transient(err), transient)
					}
				}
			}
			check("closed node", true)
			if err := client.Close(); err != nil && !errors.Is(err, redis.ErrClosed) {
				t.Fatal(err)
			}
			check("closed client", false)
		})
	}
}
