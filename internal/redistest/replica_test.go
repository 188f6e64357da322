package redistest_test

import (
	"slices"
	"testing"

	"github.com/holdfast-go/holdfast/internal/redistest"
)

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
