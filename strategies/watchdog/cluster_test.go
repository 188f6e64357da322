package watchdog_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/holdfast-go/holdfast/conformance/drivertest"
	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/internal/effort"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/strategies/single"
	"github.com/holdfast-go/holdfast/strategies/watchdog"
)

// A master of a cluster is silent for longer than the TTL. Renewals are sent in batches, or alone
// where they wait for replicas: only the locks of that master are lost.
func TestSilentNodeOfACluster(t *testing.T) { //nolint:paralleltest // it takes all that the machine has
	effort.NeedFull(t)
	redistest.Need(t)
	const silenced, well = 60, 12
	cluster := redistest.StartCluster(t, 2, redistest.Options{Args: []string{"--cluster-node-timeout", "120000"}})
	for _, master := range cluster.Nodes() {
		if _, err := cluster.AddReplica(t.Context(), master); err != nil {
			t.Fatal(err)
		}
	}
	silent := cluster.Nodes()[1]
	held := map[string][]*locker.Lock{}
	for _, client := range clients.All {
		for how, cfg := range map[string]single.Config{"together": {}, "alone": {MinReplicas: 1}} {
			drv, err := client.Dial(t, drivertest.Target{Kind: drivertest.Cluster, Addrs: cluster.Addrs()})
			match(t, err)
			t.Cleanup(func() { _ = drv.Close() })
			l := locker.Must(watchdog.New(watchdog.Config{}))(locker.Must(single.New(drv, cfg)))
			what := client.Name + ", " + how
			held[what] = acquireWhere(t, l, what, map[*redistest.Server]int{
				silent: silenced, cluster.Nodes()[0]: well,
			}, cluster.NodeForKey)
		}
	}
	match(t, silent.Freeze())
	for _, locks := range held {
		for _, lock := range locks {
			if cluster.NodeForKey(lock.Name()) == silent {
				<-lock.Done()
			}
		}
	}
	match(t, silent.Thaw())
	for what, locks := range held {
		lost := 0
		for _, lock := range locks {
			if cluster.NodeForKey(lock.Name()) == silent {
				match(t, lock.Err(), locker.ErrLost)
			} else if lock.Release(context.Background()) != nil {
				lost++
			}
		}
		if lost > 0 {
			t.Errorf("%s: %d of %d locks on the node that answers were lost", what, lost, well)
		}
	}
}

// acquireWhere acquires that many locks on each node.
func acquireWhere(
	t *testing.T, l locker.Locker, prefix string, want map[*redistest.Server]int, node func(string) *redistest.Server,
) []*locker.Lock {
	t.Helper()
	var locks []*locker.Lock
	missing := 0
	for _, n := range want {
		missing += n
	}
	for i := 0; missing > 0; i++ {
		name := fmt.Sprint(prefix, i)
		if want[node(name)] == 0 {
			continue
		}
		want[node(name)]--
		missing--
		locks = append(locks, acquire(t, t.Context(), l, locker.Request{Name: name}))
	}
	return locks
}
