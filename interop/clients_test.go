package interop

import (
	"slices"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/conformance/drivertest"
	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/internal/effort"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/locker"
)

// Over the other clients the keys are the same: one library of each language shows it, and Redisson.
func TestClients(t *testing.T) {
	t.Parallel()
	effort.NeedFull(t)
	for _, c := range clients.WithFork {
		if c.Name == clients.All[0].Name {
			continue // TestPeers has it
		}
		for _, name := range []string{"redislock", "redis-py", "redlock-5", "spring-spin", "redisson"} {
			t.Run(c.Name+"/"+name, func(t *testing.T) {
				t.Parallel()
				p := newPair(t, kindNamed(name), c)
				t.Run("excluded", p.testExcluded)
				p.hammer(t, 0)
			})
		}
	}
}

func kindNamed(name string) kind {
	return kinds[slices.IndexFunc(kinds, func(k kind) bool { return k.name == name })]
}

// In a cluster Redisson publishes and subscribes by SPUBLISH and SSUBSCRIBE alone: each side wakes the
// other there too.
func TestRedissonInCluster(t *testing.T) { //nolint:tparallel // its clients share a peer and a name
	t.Parallel()
	effort.NeedFull(t)
	cluster := redistest.StartCluster(t, 3, redistest.Options{})
	k := kindNamed("redisson")
	k.name = "redisson-cluster"
	theirs := k.start(t, cluster.Addrs()[0])
	for _, c := range clients.WithFork {
		t.Run(c.Name, func(t *testing.T) {
			drv := locker.Must(c.Dial(t, drivertest.Target{Kind: drivertest.Cluster, Addrs: cluster.Addrs()}))
			t.Cleanup(func() { _ = drv.Close() })
			bare := newStrategy(drv, k)
			p := &pair{
				kind: k, client: c, server: cluster.NodeForKey("wait"), theirs: theirs, bare: bare,
				ours: locker.Must(holdfast.Wrap(bare, holdfast.Config{})),
			}
			for range 2 { // the second time the servers know the scripts
				t.Run("excluded", p.testExcluded)
				t.Run("wait", p.testWait)
			}
		})
	}
}
