package redigo_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/gomodule/redigo/redis"
	"github.com/mna/redisc"

	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/providers/redigo"
)

// nodes is shared by the tests that disturb nobody.
var nodes = redistest.Share(func(ctx context.Context) (*redistest.Cluster, error) {
	return redistest.LaunchCluster(ctx, 3, redistest.Options{})
})

// clusters are clients of a cluster, with and without pools.
var clusters = map[string]func(addrs ...string) *redisc.Cluster{
	"pools": pooled,
	"no pools": func(addrs ...string) *redisc.Cluster {
		return &redisc.Cluster{StartupNodes: addrs, DialOptions: []redis.DialOption{redis.DialConnectTimeout(time.Second)}}
	},
}

func pooled(addrs ...string) *redisc.Cluster {
	return &redisc.Cluster{
		StartupNodes: addrs,
		CreatePool: func(addr string, options ...redis.DialOption) (*redis.Pool, error) {
			return clients.RedigoPool(addr, options...), nil
		},
	}
}

func eachCluster(
	t *testing.T, test func(t *testing.T, client func(addrs ...string) *redisc.Cluster),
) {
	t.Helper()
	for name, client := range clusters {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, client)
		})
	}
}

// slotKeys returns n keys of one slot, and of no other test.
func slotKeys(slot, n int) []string {
	var keys []string
	for i := 0; len(keys) < n; i++ {
		if k := fmt.Sprintf("key:%d", i); redistest.Slot(k) == slot {
			keys = append(keys, k)
		}
	}
	return keys
}

// use takes, counts on and frees keys through drv.
func use(t *testing.T, drv driver.Driver, keys ...string) {
	t.Helper()
	for _, k := range keys {
		if set, err := drv.SetNX(t.Context(), k, "v", time.Minute); !set || err != nil {
			t.Errorf("SetNX %s: %v, %v", k, set, err)
		}
		if set, err := drv.SetNX(t.Context(), k, "w", time.Minute); set || err != nil {
			t.Errorf("second SetNX %s: %v, %v", k, set, err)
		}
		r, err := drv.Eval(t.Context(), delOwn, []string{k}, []string{"v"})
		wantInt(t, driver.Result{Reply: r, Err: err}, 1)
	}
}

// The client knows one node, and has not asked it for the others.
func TestClusterFindsItsNodes(t *testing.T) {
	t.Parallel()
	c := nodes.Get(t)
	eachCluster(t, func(t *testing.T, client func(...string) *redisc.Cluster) {
		drv := open(t, client(c.Addrs()[0]))
		for i := range 12 {
			use(t, drv, fmt.Sprint(t.Name(), i))
		}
		r, err := drv.Eval(t.Context(), driver.NewScript(`return 42`), nil, nil)
		wantInt(t, driver.Result{Reply: r, Err: err}, 42)
		_, err = drv.Eval(t.Context(), incr, []string{"a", "b"}, nil)
		wantServerError(t, err, "CROSSSLOT ")
	})
}

// Scripts go to the node of their key and not to that of their digest.
func TestClusterBindsScriptsByKey(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 3, redistest.Options{})
	client := pooled(c.Addrs()...)
	must(t, client.Refresh())
	client.LayoutRefresh = func(_, _ [redisc.HashSlots][]string) { t.Error("the client was redirected") }
	drv := open(t, client)
	for i := range 20 {
		_, err := drv.Eval(t.Context(), incr, []string{fmt.Sprint("n", i)}, nil)
		must(t, err)
	}
	for _, n := range c.Nodes() {
		if stats, err := n.Command("INFO", "errorstats"); err != nil || strings.Contains(fmt.Sprint(stats), "MOVED") {
			t.Errorf("%s: %v, %v", n.Addr(), stats, err)
		}
	}
}

// A slot moves while the client uses it: first ASK, then MOVED against a mapping that has become
// stale.
func TestClusterSlotMoves(t *testing.T) {
	t.Parallel()
	eachCluster(t, func(t *testing.T, newClient func(...string) *redisc.Cluster) {
		c := redistest.StartCluster(t, 3, redistest.Options{})
		client := newClient(c.Addrs()...)
		must(t, client.Refresh())
		stale := newClient(c.Addrs()...)
		must(t, stale.Refresh())
		drv, other := open(t, client), open(t, stale)
		const slot = 42
		keys := slotKeys(slot, 4)
		for _, k := range keys[:2] {
			if set, err := drv.SetNX(t.Context(), k, "own", time.Minute); !set || err != nil {
				t.Fatalf("SetNX %s: %v, %v", k, set, err)
			}
		}

		move, err := c.BeginMove(t.Context(), slot, c.Nodes()[2])
		must(t, err)
		must(t, move.Migrate(t.Context(), keys[1]))
		for i, want := range []bool{false, false, true} { // here, there, nowhere: the new node gets it
			if set, err := drv.SetNX(t.Context(), keys[i], "v", time.Minute); set != want || err != nil {
				t.Errorf("on the move, SetNX %d: %v, %v", i, set, err)
			}
		}
		move.To().MustCommand(t, "SCRIPT", "FLUSH")
		r, err := drv.Eval(t.Context(), delOwn, []string{keys[1]}, []string{"own"}) // NOSCRIPT there
		wantInt(t, driver.Result{Reply: r, Err: err}, 1)
		r, err = drv.Eval(t.Context(), delOwn, []string{keys[0]}, []string{"other"})
		wantInt(t, driver.Result{Reply: r, Err: err}, 0)
		_, err = drv.Eval(t.Context(), incr, []string{keys[0], keys[2]}, nil)
		wantServerError(t, err, "TRYAGAIN ")
		if !driver.NotExecuted(err) || !driver.Transient(err) {
			t.Errorf("TRYAGAIN: not executed %v, transient %v", driver.NotExecuted(err), driver.Transient(err))
		}
		fresh := open(t, newClient(move.From().Addr())) // knows the importing node only if it asks
		if set, err := fresh.SetNX(t.Context(), keys[2], "v", time.Minute); set || err != nil {
			t.Errorf("on the move, SetNX by a new client: %v, %v", set, err)
		}
		for i := range 3 {
			r, err := drv.Eval(t.Context(), incr, []string{keys[3]}, nil)
			wantInt(t, driver.Result{Reply: r, Err: err}, int64(i+1))
		}
		must(t, move.Finish(t.Context()))
		for _, d := range []driver.Driver{drv, other} {
			for i, want := range []bool{false, true, false} {
				if set, err := d.SetNX(t.Context(), keys[i], "v", time.Minute); set != (want && d == drv) || err != nil {
					t.Errorf("moved, SetNX %d: %v, %v", i, set, err)
				}
			}
		}
		r, err = other.Eval(t.Context(), incr, []string{keys[3]}, nil)
		wantInt(t, driver.Result{Reply: r, Err: err}, 4)
	})
}

// askingCluster is a cluster all of whose replies are ASK, to a node that it does not know.
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

// A node that gets its first slot is not among those that a client knows. The error says that
// nothing ran, and may pass.
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
	must(t, c.Pool.(*redis.Pool).Close())
}

// MOVED that leads nowhere ends.
func TestClusterMovesForever(t *testing.T) {
	t.Parallel()
	m := miniredis.RunT(t)
	m.SetError("MOVED 42 127.0.0.1:2")
	c := &askingCluster{Pool: clients.RedigoPool(m.Addr())}
	drv := open(t, c)
	_, err := drv.SetNX(t.Context(), "k", "v", time.Minute)
	wantServerError(t, err, "MOVED 42 ")
	if n := m.CommandCount(); n > 10 {
		t.Errorf("%d commands", n)
	}
	must(t, c.Pool.(*redis.Pool).Close())
}

// One node is frozen. Calls to it end with their context, calls to the others are answered.
func TestClusterNodeFreezes(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 3, redistest.Options{})
	client := pooled(c.Addrs()...)
	must(t, client.Refresh())
	drv := open(t, client)
	frozen := c.NodeForSlot(0)
	var calls []driver.Call
	for i := range 60 {
		calls = append(calls, driver.Call{Script: incr, Keys: []string{fmt.Sprint("n", i)}})
	}
	for _, r := range evalMany(t.Context(), drv, calls...) {
		wantInt(t, r, 1)
	}
	must(t, frozen.Freeze())
	for i, r := range evalMany(bound(t, context.Background(), 3*time.Second), drv, calls...) {
		if c.NodeForKey(calls[i].Keys[0]) == frozen {
			wantOpen(t, r.Err, context.DeadlineExceeded)
		} else {
			wantInt(t, r, 2)
		}
	}
	ctx, cancel := context.WithCancel(bound(t, context.Background(), 3*time.Second))
	answered := setNX(ctx, drv, slotKeys(0, 1)[0])
	cancel()
	if a := returned(t, answered); !errors.Is(a.err, context.Canceled) {
		t.Errorf("error %v", a.err)
	}
	must(t, frozen.Thaw())
	eventually(t, "connections given back", func() bool {
		for _, s := range client.Stats() {
			if s.ActiveCount != s.IdleCount {
				return false
			}
		}
		return true
	})
}

// Any node will do for a subscription; a message is heard of everywhere.
func TestClusterSubscribe(t *testing.T) {
	t.Parallel()
	c := nodes.Get(t)
	eachCluster(t, func(t *testing.T, newClient func(...string) *redisc.Cluster) {
		drv := open(t, newClient(c.Addrs()...))
		s, err := drv.Subscribe(t.Context(), t.Name())
		must(t, err)
		defer s.Close()
		wantWake(t, "confirmation", s)
		for _, n := range c.Nodes() {
			n.MustCommand(t, "PUBLISH", t.Name(), "m")
			wantWake(t, "message at "+n.Addr(), s)
		}
		for _, n := range c.Nodes() {
			n.MustCommand(t, "CLIENT", "KILL", "TYPE", "pubsub")
		}
		wantWake(t, "new subscription", s)
	})
}
