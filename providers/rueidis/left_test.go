package rueidis

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker/driver"
)

// While a shared connection is silent and others use up the client's pool, calls wait there for a
// connection. They end a second after their callers have left.
func TestPooledCallsEndAfterTheirCallers(t *testing.T) {
	t.Parallel()
	script := driver.NewScript("return 1")
	for op, send := range map[string]func(ctx context.Context, drv driver.Driver) error{
		"SetNX": func(ctx context.Context, drv driver.Driver) error {
			_, err := drv.SetNX(ctx, "k", "v", time.Minute)
			return err
		},
		"Eval": func(ctx context.Context, drv driver.Driver) error {
			_, err := drv.Eval(ctx, script, []string{"k"}, nil)
			return err
		},
	} {
		for name, deadline := range map[string]bool{"deadline": true, "cancel": false} {
			t.Run(op+"/"+name, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					a := withPoolUsedUp(t)
					ctx, cancel := context.WithCancel(context.Background())
					defer cancel()
					if deadline {
						ctx, cancel = context.WithTimeout(ctx, time.Second)
						defer cancel()
					} else {
						time.AfterFunc(time.Second, cancel)
					}
					check.Is(t, send(ctx, a), ctx.Err())
					<-time.After(time.Second) // of the bubble
					synctest.Wait()
					check.Equal(t, "flights that wait for a connection", len(a.nodes[0].pool), 0)
				})
			})
		}
	}
}

// withPoolUsedUp returns a driver with a shared connection taken for silent, and a client without
// another to give. It works in a bubble.
func withPoolUsedUp(t *testing.T) *rueidisDriver {
	t.Helper()
	m := miniredis.NewMiniRedis()
	t.Cleanup(m.Close)
	client, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress: []string{"192.0.2.1:6379"}, DisableCache: true, ForceSingleClient: true, AlwaysRESP2: true,
		BlockingPoolSize: 1,
		DialCtxFn:        func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error) { return m.Dial() },
	})
	check.Must(t, err)
	t.Cleanup(client.Close)
	_, release := client.Dedicate()
	t.Cleanup(release)
	drv, err := New(client)
	check.Must(t, err)
	t.Cleanup(func() { _ = drv.Close() })
	a := drv.(*rueidisDriver)
	a.nodes[0].beginProbe(-silence)
	return a
}

// In a cluster each command has a connection of the pool to itself. They are as few as elsewhere.
func TestPooledConnectionsOfACluster(t *testing.T) {
	check.InFakeTime(t, func(t *testing.T) {
		var dials atomic.Int32
		client, _ := open(t, func(o *rueidis.ClientOption) {
			dial := o.DialCtxFn
			o.DialCtxFn = func(ctx context.Context, addr string, d *net.Dialer, c *tls.Config) (net.Conn, error) {
				dials.Add(1)
				<-time.After(10 * time.Millisecond) // of the bubble: more commands come
				return dial(ctx, addr, d, c)
			}
		})
		drv, err := New(client)
		check.Must(t, err)
		t.Cleanup(func() { _ = drv.Close() })
		a := drv.(*rueidisDriver)
		call := func(i int) {
			_, err := drv.SetNX(t.Context(), fmt.Sprint(i), "v", time.Hour)
			check.OK(t, err)
		}
		call(-1)
		check.Advance(time.Second) // it knows the master
		for _, n := range a.nodes {
			n.beginProbe(-silence)
		}
		before := dials.Load()
		var wg sync.WaitGroup
		for i := range 600 {
			wg.Go(func() { call(i) })
		}
		wg.Wait()
		check.Within(t, "new connections", dials.Load()-before, 2, maxPooled+reserved)
		for _, n := range a.nodes {
			check.Equal(t, "places taken", len(n.pool)+len(n.reserve), 0)
		}
	})
}
