package redistest_test

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"testing"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

func TestSlot(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 1, redistest.Options{})
	for _, key := range []string{"", "a", "123456789", "{a}b", "{}a", "x{a}{b}", "{{a}}", "a}b", "{a", "é{ü}"} {
		if got, want := int64(redistest.Slot(key)), c.Nodes()[0].MustCommand(t, "CLUSTER", "KEYSLOT", key); got != want {
			t.Errorf("Slot(%q) = %d, want %d", key, got, want)
		}
	}
}

// keysIn returns n keys of a slot.
func keysIn(slot, n int) []string {
	var keys []string
	for i := 0; len(keys) < n; i++ {
		if k := fmt.Sprintf("key:%d", i); redistest.Slot(k) == slot {
			keys = append(keys, k)
		}
	}
	return keys
}

func TestClusterServesEverySlotAndMovesOne(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 3, redistest.Options{})
	keys := keysIn(42, 2)
	from, to := c.NodeForSlot(42), c.Nodes()[2]
	check.Equal[any](t, "KEYSLOT", c.Nodes()[1].MustCommand(t, "CLUSTER", "KEYSLOT", keys[0]), int64(42))
	for _, k := range keys {
		from.MustCommand(t, "SET", k, "v")
	}
	_, err := to.Command("GET", keys[0])
	wantServerError(t, err, "MOVED 42 "+from.Addr())

	m, err := c.BeginMove(t.Context(), 42, to)
	check.Must(t, err)
	if m.From() != from || m.To() != to {
		t.Errorf("moves from %s to %s", m.From().Addr(), m.To().Addr())
	}
	check.Must(t, m.Migrate(t.Context(), keys[0]))
	_, err = from.Command("GET", keys[0])
	wantServerError(t, err, "ASK 42 "+to.Addr())
	_, err = from.Command("MGET", keys[0], keys[1])
	wantServerError(t, err, "TRYAGAIN ", "ASK 42 "+to.Addr()) // the latter from Redis 6.2
	check.Must(t, m.Finish(t.Context()))
	for _, k := range keys {
		check.Equal[any](t, "value of "+k+" at the new owner", to.MustCommand(t, "GET", k), "v")
	}
	_, err = from.Command("GET", keys[0])
	wantServerError(t, err, "MOVED 42 "+to.Addr())
	check.Equal(t, "NodeForKey", c.NodeForKey(keys[0]).Addr(), to.Addr())
}

// If another process takes the first node's port, the node gets and announces a new one.
func TestClusterAnnouncesOtherPortsAndFindsNewOnes(t *testing.T) {
	t.Parallel()
	const n = 3
	var mu sync.Mutex
	var thief net.Listener
	proxied := map[string]int{} // announced port by real address
	c := redistest.StartCluster(t, n, redistest.Options{Announce: func(addr string) (int, error) {
		mu.Lock()
		defer mu.Unlock()
		if thief == nil {
			var err error
			thief, err = net.Listen("tcp", addr)
			return 1, err
		}
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return 0, err
		}
		t.Cleanup(func() { l.Close() })
		proxied[addr] = l.Addr().(*net.TCPAddr).Port
		return proxied[addr], nil
	}})
	defer thief.Close()
	check.Equal(t, fmt.Sprintf("Announce was called for %v", proxied), len(proxied), n)
	for i, s := range c.Nodes() {
		want := fmt.Sprintf("127.0.0.1:%d", proxied[s.Addr()])
		check.Equal(t, "Addrs", c.Addrs()[i], want)
		other := c.Nodes()[(i+1)%n]
		key := keysIn(i*redistest.Slots/n+1, 1)[0]
		_, err := other.Command("GET", key)
		wantServerError(t, err, fmt.Sprintf("MOVED %d %s", redistest.Slot(key), want))
		check.Equal(t, "NodeForKey of "+key, c.NodeForKey(key).Addr(), s.Addr())
	}
	check.Must(t, c.MoveSlot(t.Context(), 0, c.Nodes()[1])) // MIGRATE needs the real port
}

func TestAnnounceFails(t *testing.T) {
	redistest.Need(t)
	t.Parallel()
	broken := errors.New("broken")
	_, err := redistest.LaunchCluster(t.Context(), 3, redistest.Options{Announce: func(string) (int, error) { return 0, broken }})
	check.Is(t, err, broken)
}

func TestClusterFailover(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 3, redistest.Options{})
	master := c.NodeForSlot(42)
	replica, err := c.AddReplica(t.Context(), master)
	check.Must(t, err)
	for _, s := range append(c.Nodes(), replica) {
		s.MustCommand(t, "CONFIG", "SET", "cluster-node-timeout", 600_000) // none is replaced on its own
	}
	key := keysIn(42, 1)[0]
	master.MustCommand(t, "SET", key, "v")
	if found, err := c.Replica(t.Context(), master); found != replica || err != nil {
		t.Fatalf("Replica: %v, %v", found, err)
	}
	leads := func(s *redistest.Server) {
		t.Helper()
		if c.NodeForSlot(42) != s || !slices.Contains(c.Nodes(), s) || len(c.Nodes()) != 3 {
			t.Errorf("%s does not lead", s.Addr())
		}
		if now, err := c.Masters(t.Context()); !slices.Equal(now, c.Nodes()) || err != nil {
			t.Errorf("Masters: %v, %v", now, err)
		}
		check.Equal(t, "GET", s.MustCommand(t, "GET", key), "v")
	}
	check.Must(t, c.Failover(t.Context(), replica))
	leads(replica)
	check.Must(t, replica.Kill())
	master.MustCommand(t, "CLUSTER", "FAILOVER", "TAKEOVER")
	check.Must(t, c.WaitMaster(t.Context(), master))
	check.Equal(t, "Masters succeeds while a node is down", check.ErrOf(c.Masters(t.Context())) == nil, false)
	check.Must(t, replica.Restart(t.Context()))
	check.Must(t, c.WaitMasters(t.Context()))
	leads(master)
	check.Must(t, c.MoveSlot(t.Context(), 42, c.Nodes()[2]))
}
