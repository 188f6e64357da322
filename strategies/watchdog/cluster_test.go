package watchdog_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/conformance/drivertest"
	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/internal/effort"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/strategies/single"
	"github.com/holdfast-go/holdfast/strategies/watchdog"
)

// acquireAtOnce acquires n locks in several goroutines.
func acquireAtOnce(t *testing.T, l locker.Locker, n int, req locker.Request) []*locker.Lock {
	t.Helper()
	prefix := req.Name
	locks := make([]*locker.Lock, n)
	var wg sync.WaitGroup
	const workers = 16
	for w := range workers {
		wg.Go(func() {
			for i := w; i < n; i += workers {
				req := req
				req.Name = fmt.Sprint(prefix, i)
				var err error
				if locks[i], err = l.Acquire(t.Context(), req); err != nil {
					t.Errorf("acquire: %v", err)
					return
				}
			}
		})
	}
	wg.Wait()
	if t.Failed() {
		t.FailNow()
	}
	return locks
}

// releaseAtOnce releases the locks, and checks that they were held.
func releaseAtOnce(t *testing.T, locks []*locker.Lock, held func(*locker.Lock) bool) {
	t.Helper()
	var wg sync.WaitGroup
	const workers = 16
	for w := range workers {
		wg.Go(func() {
			for i := w; i < len(locks); i += workers {
				lock := locks[i]
				if !held(lock) {
					match(t, lock.Err(), locker.ErrLost)
					continue
				}
				if err := lock.Release(context.Background()); err != nil {
					t.Errorf("release: %v", err)
				}
			}
		})
	}
	wg.Wait()
}

// One of three masters is silent, with a hundred or more watched locks on each. If that takes less
// than the TTL, no lock is lost; if longer, only its own.
func TestSilentNodeOfACluster(t *testing.T) { // alone: with thousands of locks it takes all that the machine has
	redistest.Need(t)
	const ttl = 4 * time.Second
	cluster := redistest.StartCluster(t, 3, redistest.Options{Args: []string{"--cluster-node-timeout", "60000"}})
	silent := cluster.Nodes()[1]
	for _, client := range clients.All {
		t.Run(client.Name, func(t *testing.T) {
			drv, err := client.Dial(t, drivertest.Target{Kind: drivertest.Cluster, Addrs: cluster.Addrs()})
			match(t, err)
			t.Cleanup(func() { _ = drv.Close() })
			l := locker.Must(watchdog.New(watchdog.Config{}))(locker.Must(single.New(drv, single.Config{})))
			for what, freeze := range map[string]time.Duration{"shorter": ttl / 3, "longer": 6 * ttl / 5} {
				locks := acquireAtOnce(t, l, effort.Of(300, 300, 1500), locker.Request{Name: what, TTL: ttl})
				wait(t, ttl/3-ttl/30) // until renewals are due
				match(t, silent.Freeze())
				wait(t, freeze)
				match(t, silent.Thaw())
				wait(t, ttl)
				releaseAtOnce(t, locks, func(lock *locker.Lock) bool {
					return freeze < ttl || cluster.NodeForKey(lock.Name()) != silent
				})
			}
		})
	}
}

// wait waits in real time, since the server is real.
func wait(t *testing.T, d time.Duration) {
	t.Helper()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-t.Context().Done():
		t.Fatal(t.Context().Err())
	}
}
