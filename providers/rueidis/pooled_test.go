package rueidis

import (
	"fmt"
	"testing"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/locker/driver"
)

// A batch avoids a silent shared connection while its slot is on the move. The client's own DoMulti
// panics then, in a goroutine where nobody can recover.
func TestPooledBatchOfASlotOnTheMove(t *testing.T) {
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
	for _, n := range a.nodes { // also of those that the driver does not know yet
		n.beginProbe(-silence)
	}

	script := driver.NewScript("return redis.call('INCR', KEYS[1])")
	var calls []driver.Call
	for i := range 20 {
		calls = append(calls, driver.Call{Script: script, Keys: []string{fmt.Sprintf("{batch}%d", i)}})
	}
	slot := redistest.Slot("batch")
	to := cluster.Nodes()[0]
	if to == cluster.NodeForSlot(slot) {
		to = cluster.Nodes()[1]
	}
	move, err := cluster.BeginMove(t.Context(), slot, to)
	check.Must(t, err)
	for round, batch := range [][]driver.Call{calls, calls, calls[:8], calls[:1]} {
		for i, r := range a.EvalMany(t.Context(), batch) {
			if r.Err != nil {
				t.Fatalf("call %d: %v", i, r.Err)
			}
			if n, err := r.Reply.Int(0); n != int64(round)+1 || err != nil {
				t.Errorf("call %d answered %d, %v: want %d", i, n, err, round+1)
			}
		}
	}
	check.Must(t, move.Finish(t.Context()))
}
