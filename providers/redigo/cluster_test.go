package redigo_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/gomodule/redigo/redis"
	"github.com/mna/redisc"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/providers/redigo"
)

// nodes is shared by tests without side effects on one another.
var nodes = redistest.Share(func(ctx context.Context) (*redistest.Cluster, error) {
	return redistest.LaunchCluster(ctx, 3, redistest.Options{})
})

func pooled(addrs ...string) *redisc.Cluster {
	return &redisc.Cluster{
		StartupNodes: addrs,
		CreatePool: func(addr string, options ...redis.DialOption) (*redis.Pool, error) {
			return clients.RedigoPool(addr, options...), nil
		},
	}
}

// The client knows one node, has not asked it for the others, and has no pools.
func TestClusterFindsItsNodes(t *testing.T) {
	t.Parallel()
	c := nodes.Get(t)
	drv := open(t, &redisc.Cluster{StartupNodes: c.Addrs()[:1]})
	for i := range 12 {
		if set, err := drv.SetNX(t.Context(), rand.Text(), "v", time.Minute); !set || err != nil {
			t.Errorf("SetNX %d: %v, %v", i, set, err)
		}
	}
	r, err := drv.Eval(t.Context(), driver.NewScript(`return 42`), nil, nil)
	wantInt(t, r, err, 42)
	sub, err := drv.Subscribe(t.Context(), t.Name())
	check.Must(t, err)
	defer sub.Close()
	<-sub.Wake() // the confirmation
}

// Scripts go to the node of their key and not to that of their digest.
func TestClusterBindsScriptsByKey(t *testing.T) {
	t.Parallel()
	client := pooled(nodes.Get(t).Addrs()...)
	check.Must(t, client.Refresh())
	client.LayoutRefresh = func(_, _ [redisc.HashSlots][]string) { t.Error("the client was redirected") }
	drv := open(t, client)
	for i := range 20 {
		_, err := drv.Eval(t.Context(), incr, []string{fmt.Sprint(t.Name(), i)}, nil)
		check.Must(t, err)
	}
}

// askingCluster is a cluster that replies only ASK, to an unknown node.
type askingCluster struct {
	redigo.Pool
	visited, refreshed int
}

func (c *askingCluster) EachNode(_ bool, visit func(string, redis.Conn) error) error {
	c.visited++
	conn := c.Get()
	defer conn.Close()
	return visit("127.0.0.1:1", conn)
}

func (c *askingCluster) Refresh() error {
	c.refreshed++
	return nil
}

// A client does not know a node with its first slot. The error reports that nothing ran, and is
// transient.
func TestClusterAsksUnknownNode(t *testing.T) {
	t.Parallel()
	m := miniredis.RunT(t)
	m.SetError("ASK 42 127.0.0.1:2")
	c := &askingCluster{Pool: clients.RedigoPool(m.Addr())}
	drv := open(t, c)
	_, err := drv.SetNX(t.Context(), "k", "v", time.Minute)
	wantNotSent(t, err, driver.ErrNotSent)
	if !driver.Transient(err) || c.visited != 2 || c.refreshed != 1 {
		t.Errorf("transient %v, %d walks, %d refreshes", driver.Transient(err), c.visited, c.refreshed)
	}
	check.Must(t, c.Pool.(*redis.Pool).Close())
}

// A MOVED loop ends.
func TestClusterMovesForever(t *testing.T) {
	t.Parallel()
	clients.Bubble(t, func(t *testing.T) {
		m, p := clients.Proxied(t)
		m.SetError("MOVED 42 127.0.0.1:2")
		c := &askingCluster{Pool: clients.RedigoPool(p.Addr(), redis.DialContextFunc(m.Net.Dial))}
		_, err := open(t, c).SetNX(t.Context(), "k", "v", time.Minute)
		wantServerError(t, err, "MOVED 42 ")
		check.Equal(t, "commands", p.Sent("k"), 6)
		check.Must(t, c.Pool.(*redis.Pool).Close())
	})
}
