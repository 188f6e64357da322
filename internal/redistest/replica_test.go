package redistest_test

import (
	"slices"
	"testing"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

func TestClusterFailover(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 3, redistest.Options{Args: []string{"--cluster-node-timeout", "2000"}})
	master := c.NodeForSlot(42)
	replica, err := c.AddReplica(t.Context(), master)
	check.Must(t, err)
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
	check.Must(t, c.WaitMaster(t.Context(), master))
	if _, err := c.Masters(t.Context()); err == nil {
		t.Error("Masters: want an error while a node is down")
	}
	check.Must(t, replica.Restart(t.Context()))
	check.Must(t, c.WaitMasters(t.Context()))
	leads(master)
	check.Must(t, c.MoveSlot(t.Context(), 42, c.Nodes()[2]))
}
