package redistest_test

import (
	"slices"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/redistest"
)

func TestReplicaFollowsItsMasterThroughARelay(t *testing.T) {
	t.Parallel()
	for what, opts := range map[string]redistest.Options{"plain": {}, "with a password": {Password: "sesame"}} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			master := redistest.Start(t, opts)
			between := redistest.StartRelay(t, master.Addr(), time.Millisecond)
			replica := redistest.StartReplica(t, master, between.Addr())
			wait := func(want int64, ms int) {
				t.Helper()
				c, err := master.Dial(t.Context())
				must(t, err)
				defer c.Close()
				_, err = c.Do("SET", "k", "v")
				must(t, err)
				if got, err := c.Do("WAIT", 1, ms); got != want || err != nil {
					t.Errorf("WAIT: %v, %v; want %d", got, err, want)
				}
			}
			wait(1, 20_000)
			must(t, replica.Freeze())
			wait(0, 500)
			must(t, replica.Thaw())
			wait(1, 20_000)
			must(t, master.Kill())
			replica.MustCommand(t, "REPLICAOF", "NO", "ONE")
			if got := replica.MustCommand(t, "GET", "k"); got != "v" {
				t.Errorf("after the failover: %v", got)
			}
		})
	}
}

func TestClusterWithAReplica(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 3, redistest.Options{})
	master := c.NodeForSlot(42)
	replica, err := c.AddReplica(t.Context(), master)
	must(t, err)
	key := keysIn(42, 1)[0]
	master.MustCommand(t, "SET", key, "v")
	if got := master.MustCommand(t, "WAIT", 1, 10000); got != int64(1) {
		t.Errorf("WAIT: %v", got)
	}
	_, err = replica.Command("GET", key)
	wantServerError(t, err, "MOVED 42 "+master.Addr())
	must(t, c.MoveSlot(t.Context(), 42, c.Nodes()[2]))
}

func TestClusterFailover(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 3, redistest.Options{Args: []string{"--cluster-node-timeout", "2000"}})
	master := c.NodeForSlot(42)
	replica, err := c.AddReplica(t.Context(), master)
	must(t, err)
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
		if got := s.MustCommand(t, "GET", key); got != "v" {
			t.Errorf("GET: %v", got)
		}
	}
	must(t, c.Failover(t.Context(), replica))
	leads(replica)
	must(t, replica.Kill())
	must(t, c.WaitMaster(t.Context(), master))
	if _, err := c.Masters(t.Context()); err == nil {
		t.Error("Masters: want an error while a node is down")
	}
	must(t, replica.Restart(t.Context()))
	must(t, c.WaitMasters(t.Context()))
	leads(master)
	must(t, c.MoveSlot(t.Context(), 42, c.Nodes()[2]))
}
