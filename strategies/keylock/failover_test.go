package keylock_test

import (
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/strategies/single"
)

// failovers names the environment variable with the number of failovers of each kind. Default: a
// few.
const failovers = "HOLDFAST_FAILOVERS"

// TestFailoverKeepsWhatIsAcknowledged kills masters right after a grant and makes the replica the
// next master. A lock acknowledged by a replica must be there; without that, locks are lost if the
// link has any latency. The log has the shares.
func TestFailoverKeepsWhatIsAcknowledged(t *testing.T) { //nolint:tparallel // one failover after the other, or the machine is the lag
	t.Parallel()
	redistest.Need(t)
	n := 3
	if text := os.Getenv(failovers); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil {
			t.Fatalf("%s: %v", failovers, err)
		}
	}
	for _, link := range []struct {
		name  string
		delay time.Duration
	}{{"loopback", 0}, {"link of 100 ms", 100 * time.Millisecond}} {
		for _, replicas := range []int{0, 1} {
			lost := 0
			unproved := func() bool { return replicas == 0 && link.delay > 0 && lost == 0 } // a busy machine kills late
			made := 0
			for ; made < n || unproved() && made < 10*n; made++ {
				t.Run(fmt.Sprintf("%s, %d replicas, %d", link.name, replicas, made), func(t *testing.T) {
					if lostInFailover(t, clients.All[made%len(clients.All)], link.delay, replicas) {
						lost++
					}
				})
			}
			t.Logf("%s, MinReplicas %d: %d of %d locks were lost", link.name, replicas, lost, made)
			switch {
			case replicas > 0 && lost > 0:
				t.Errorf("%s: %d locks were lost that a replica had acknowledged", link.name, lost)
			case unproved():
				t.Errorf("%s: no lock was lost: this proves nothing", link.name)
			}
		}
	}
}

// lostInFailover reports whether a lock is gone after a failover right behind its grant.
func lostInFailover(t *testing.T, c clients.Client, delay time.Duration, replicas int) bool {
	t.Helper()
	master := redistest.Start(t, redistest.Options{})
	addr := master.Addr()
	if delay > 0 {
		addr = redistest.StartRelay(t, addr, delay).Addr()
	}
	replica := redistest.StartReplica(t, master, addr)
	l := locker.Must(single.New(c.Open(t, master.Addr()), single.Config{
		MinReplicas: replicas, AttemptTimeout: time.Minute, ReplicaTimeout: 30 * time.Second,
	}))
	for range 3 { // connections and scripts are there
		wantNone(t, locker.Must(l.Acquire(t.Context(), locker.Request{Name: "warm"})).Release(t.Context()))
	}
	locker.Must(l.Acquire(t.Context(), locker.Request{Name: name}))
	wantNone(t, master.Kill())
	replica.MustCommand(t, "REPLICAOF", "NO", "ONE")
	return replica.MustCommand(t, "EXISTS", name) == int64(0)
}
