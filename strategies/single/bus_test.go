package single_test

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/conformance/drivertest"
	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/locktrace"
	"github.com/holdfast-go/holdfast/middleware/retry"
	"github.com/holdfast-go/holdfast/strategies/single"
)

// In a cluster, nodes without a part in a lock's slot hear nothing of its hand-overs: a driver
// publishes to all nodes only until its first SSUBSCRIBE is answered.
func TestWakeUpsStayAtTheNode(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 3, redistest.Options{})
	for _, client := range clients.All { // one by one, to count messages
		target := drivertest.Target{Kind: drivertest.Cluster, Addrs: c.Addrs()}
		var lockers []locker.Locker // of two processes
		for range 2 {
			drv := locker.Must(client.Dial(t, target))
			t.Cleanup(func() { _ = drv.Close() })
			lockers = append(lockers, locker.Must(retry.New(retry.Config{}))(locker.Must(single.New(drv, single.Config{TTL: time.Hour, AttemptTimeout: time.Minute}))))
		}
		const handOvers = 20
		name := "bus:" + client.Name
		lock := locker.Must(lockers[0].Acquire(t.Context(), locker.Request{Name: name}))
		before := 0
		for i := range handOvers {
			if i == 2 { // both have subscribed once
				before = busMessages(t, c)
			}
			next := waitFor(t, lockers[(i+1)%2], name)
			check.Must(t, lock.Release(t.Context()))
			if lock = <-next; lock == nil {
				t.Fatalf("%s: the waiter did not get the lock", client.Name)
			}
		}
		check.OK(t, lock.Release(t.Context()))
		// Each message published to all makes a node send two. A driver that subscribes again, as after a
		// broken connection, may publish one.
		if n := busMessages(t, c) - before; n >= handOvers-2 {
			t.Errorf("%s: %d hand-overs made the nodes send %d messages to one another, want none", client.Name, handOvers-2, n)
		}
	}
}

// waitFor acquires in the background, and returns once the acquire waits and hears of releases.
func waitFor(t *testing.T, l locker.Locker, name string) <-chan *locker.Lock {
	t.Helper()
	waits, got := make(chan struct{}, 1), make(chan *locker.Lock, 1)
	ctx := locktrace.With(t.Context(), &locktrace.Trace{Waiting: func(_ context.Context, info locktrace.WaitingInfo) {
		if info.Subscribed {
			select {
			case waits <- struct{}{}:
			default:
			}
		}
	}})
	go func() {
		lock := locker.Must(l.Acquire(ctx, locker.Request{Name: name}))
		got <- lock
	}()
	<-waits
	return got
}

// busMessages returns the number of published messages sent between nodes.
func busMessages(t *testing.T, c *redistest.Cluster) (sum int) {
	t.Helper()
	for _, node := range c.Nodes() {
		info, _ := node.MustCommand(t, "CLUSTER", "INFO").(string)
		for line := range strings.Lines(info) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
			if strings.HasPrefix(name, "cluster_stats_messages_publish") && strings.HasSuffix(name, "_sent") {
				n := locker.Must(strconv.Atoi(value))
				sum += n
			}
		}
	}
	return sum
}
