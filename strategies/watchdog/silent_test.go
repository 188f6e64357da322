//nolint:forbidigo // fake time
package watchdog_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/conformance/drivertest"
	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/strategies/single"
	"github.com/holdfast-go/holdfast/strategies/watchdog"
)

// divided is a Locker without a server, whose locks are renewed one by one. Locks whose name begins
// with "silent" get no reply while silent is set.
type divided struct {
	granting
	silent *atomic.Bool
	name   string
}

func (d divided) Acquire(ctx context.Context, req locker.Request) (*locker.Lock, error) {
	d.name = req.Name
	return locker.NewLock(ctx, lease.Grant{Name: req.Name, Token: "token", TTL: req.TTL, Deadline: time.Now().Add(req.TTL)}, d), nil
}

func (d divided) Do(ctx context.Context, op lease.Op) (lease.Term, error) {
	if d.silent.Load() && strings.HasPrefix(d.name, "silent") {
		<-ctx.Done()
		return lease.Term{}, ctx.Err()
	}
	time.Sleep(2 * time.Millisecond) // a round trip
	return d.granting.Do(ctx, op)
}

// Renewals are sent alone, through a Locker that routes to two servers. A server that does not
// answer costs the locks of the other nothing, however many there are, and the number of goroutines
// is bounded.
func TestSilenceAmongLonelyRenewals(t *testing.T) { //nolint:paralleltest // it counts goroutines
	for _, tt := range []struct{ silent, well, goroutines int }{{20, 30, 40}, {150, 50, 200}, {10_000, 200, 3*128 + 64}} {
		t.Run(fmt.Sprint(tt.silent), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := divided{silent: new(atomic.Bool)}
				l := locker.Must(watchdog.New(watchdog.Config{}))(d)
				acquireSome := func(prefix string, n int) []*locker.Lock {
					locks := make([]*locker.Lock, n)
					for i := range locks {
						locks[i] = acquire(t, t.Context(), l, locker.Request{Name: fmt.Sprint(prefix, i)})
					}
					return locks
				}
				silent, well := acquireSome("silent", tt.silent), acquireSome("well", tt.well)
				time.Sleep(ttl) // so that the jitter spreads them
				d.silent.Store(true)
				before, most := runtime.NumGoroutine(), 0
				for start := time.Now(); time.Since(start) < 2*ttl; time.Sleep(100 * time.Millisecond) {
					most = max(most, runtime.NumGoroutine())
				}
				lost := 0
				for _, lock := range well {
					if lock.Err() != nil {
						lost++
					}
				}
				if lost > 0 {
					t.Errorf("%d of %d locks on the server that answers were lost", lost, tt.well)
				}
				if most > before+tt.goroutines {
					t.Errorf("%d goroutines more", most-before)
				}
				t.Logf("%d goroutines more", most-before)
				for _, lock := range silent {
					match(t, lock.Err(), locker.ErrLost)
				}
				d.silent.Store(false)
				for _, lock := range well {
					_ = lock.Release(t.Context())
				}
				time.Sleep(ttl)
			})
		})
	}
}

// A node of a cluster is silent for longer than the TTL, and renewals are sent alone since they
// wait for replicas: only the locks of that node are lost. The locks are few and their leases long,
// because each renewal takes some milliseconds on a busy machine.
func TestSilentNodeWithMinReplicas(t *testing.T) { //nolint:paralleltest // it takes all that the machine has
	redistest.Need(t)
	const ttl, silenced, well = 6 * time.Second, 60, 12
	cluster := redistest.StartCluster(t, 2, redistest.Options{Args: []string{"--cluster-node-timeout", "60000"}})
	for _, master := range cluster.Nodes() {
		if _, err := cluster.AddReplica(t.Context(), master); err != nil {
			t.Fatal(err)
		}
	}
	silent := cluster.Nodes()[1]
	held := map[string][]*locker.Lock{}
	for _, client := range clients.All {
		drv, err := client.Dial(t, drivertest.Target{Kind: drivertest.Cluster, Addrs: cluster.Addrs()})
		match(t, err)
		t.Cleanup(func() { _ = drv.Close() })
		l := locker.Must(single.New(drv, single.Config{MinReplicas: 1}))
		held[client.Name] = acquireWhere(t, locker.Must(watchdog.New(watchdog.Config{}))(l), client.Name, ttl, map[*redistest.Server]int{
			silent: silenced, cluster.Nodes()[0]: well,
		}, cluster.NodeForKey)
	}
	match(t, silent.Freeze())
	wait(t, 5*ttl/4)
	match(t, silent.Thaw())
	for client, locks := range held {
		lost := 0
		for _, lock := range locks {
			if cluster.NodeForKey(lock.Name()) != silent && lock.Err() != nil {
				lost++
			}
		}
		if lost > 0 {
			t.Errorf("%s: %d of %d locks on the node that answers were lost", client, lost, well)
		}
		releaseAtOnce(t, locks, func(lock *locker.Lock) bool { return cluster.NodeForKey(lock.Name()) != silent && lock.Err() == nil })
	}
}

// acquireWhere acquires that many locks on each node.
func acquireWhere(
	t *testing.T, l locker.Locker, prefix string, ttl time.Duration, want map[*redistest.Server]int, node func(string) *redistest.Server,
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
		locks = append(locks, acquire(t, t.Context(), l, locker.Request{Name: name, TTL: ttl}))
	}
	return locks
}
