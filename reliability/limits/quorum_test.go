package limits

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/effort"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/providers/goredis"
	"github.com/holdfast-go/holdfast/strategies/redlock"
	"github.com/holdfast-go/holdfast/strategies/single"
)

// A quorum beside a silent node leaves no more calls there than a fixed number, whether or not the
// client ends a call at its deadline. Before, each acquire left one for as long as its lease:
// 11,000 goroutines and 190 MB after ten seconds.
func TestQuorumBesideASilentNode(t *testing.T) { //nolint:paralleltest // it counts goroutines
	effort.NeedFull(t)
	for what, obeysDeadline := range map[string]bool{"ContextTimeoutEnabled": true, "not ContextTimeoutEnabled": false} {
		t.Run(what, func(t *testing.T) { quorumBesideASilentNode(t, obeysDeadline) })
	}
}

func quorumBesideASilentNode(t *testing.T, obeysDeadline bool) {
	t.Helper()
	const nodes, lasts = 5, 10 * time.Second
	lockers := make([]locker.Locker, nodes)
	servers := make([]*redistest.Server, nodes)
	for i := range nodes {
		servers[i] = redistest.Start(t, redistest.Options{})
		client := redis.NewClient(&redis.Options{Addr: servers[i].Addr(), PoolSize: 128, ContextTimeoutEnabled: obeysDeadline})
		t.Cleanup(func() { _ = client.Close() })
		drv := locker.Must(goredis.New(client))
		t.Cleanup(func() { _ = drv.Close() })
		lockers[i] = locker.Must(single.New(drv, single.Config{}))
	}
	l := locker.Must(redlock.New(lockers, redlock.Config{}))
	cycle := func(i int) {
		//realtime:ok most servers are killed
		lock, err := l.Acquire(t.Context(), locker.Request{Name: fmt.Sprint("name", i%4), TTL: 10 * time.Second})
		if err != nil {
			t.Fatalf("Acquire %d: %v", i, err)
		}
		if err := lock.Release(context.WithoutCancel(t.Context())); err != nil && !errors.Is(err, locker.ErrUnknownOutcome) {
			t.Fatalf("Release %d: %v", i, err)
		}
	}
	cycle(0)
	before := measure()
	if err := servers[nodes-1].Freeze(); err != nil {
		t.Fatal(err)
	}
	cycles, most := 0, 0
	for start := time.Now(); time.Since(start) < lasts; cycles++ {
		cycle(cycles)
		most = max(most, runtime.NumGoroutine())
	}
	after := measure()
	if err := servers[nodes-1].Thaw(); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d cycles; %d goroutines, %d KB more", cycles, most-before.goroutines, (after.heap+after.stack-before.heap-before.stack)/1024)
	if more := most - before.goroutines; more > 300 {
		t.Errorf("%d goroutines more after %d cycles, want 300 at most", more, cycles)
	}
	if more := after.heap + after.stack - before.heap - before.stack; more > 80<<20 {
		t.Errorf("%d MB more, want 80 at most", more>>20)
	}
}
