package rueidis

import (
	"fmt"
	"sync"
	"testing"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/locker/driver"
)

// Calls that travel together avoid a silent shared connection while their slot is on the move: the
// client's own DoMulti panics then, in a goroutine without recovery.
func TestPooledCallsOfASlotOnTheMove(t *testing.T) {
	t.Parallel()
	redistest.Need(t)
	cluster := redistest.StartCluster(t, 3, redistest.Options{})
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: cluster.Addrs(), DisableCache: true})
	check.Must(t, err)
	t.Cleanup(client.Close)
	drv, err := New(client)
	check.Must(t, err)
	t.Cleanup(func() { _ = drv.Close() })
	a := drv.(*rueidisDriver)
	for _, n := range a.nodes { // also of nodes unknown to the driver
		n.beginProbe(-silence)
	}

	script := driver.NewScript("return redis.call('INCR', KEYS[1])")
	slot := redistest.Slot("moved")
	to := cluster.Nodes()[0]
	if to == cluster.NodeForSlot(slot) {
		to = cluster.Nodes()[1]
	}
	move, err := cluster.BeginMove(t.Context(), slot, to)
	check.Must(t, err)
	for round, calls := range []int{40, 40, 8, 1} {
		var wg sync.WaitGroup
		for i := range calls {
			wg.Go(func() {
				r, err := a.Eval(t.Context(), script, []string{fmt.Sprintf("{moved}%d", i)}, nil)
				if n, _ := r.Int(0); n != int64(round)+1 || err != nil {
					t.Errorf("call %d answered %d, %v: want %d", i, n, err, round+1)
				}
			})
		}
		wg.Wait()
	}
	check.Must(t, move.Finish(t.Context()))
}
