package semaphore_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/strategies/semaphore"
)

// On a real server, over all clients at once, no more permits are held than there are, and requests
// of all sizes get theirs.
func TestManyProcessesOnARealServer(t *testing.T) {
	t.Parallel()
	const permits, rounds = 5, 5
	server := redistest.Start(t, redistest.Options{})
	var used, most atomic.Int64
	var wg sync.WaitGroup
	var mu sync.Mutex
	var fences []int64
	for i := range 2 * len(clients.All) {
		drv := clients.All[i%len(clients.All)].Open(t, server.Addr())
		l := process(locker.Must(semaphore.New(drv, semaphore.Config{Permits: permits})))
		for j := range 3 {
			wg.Go(func() {
				for range rounds {
					req := locker.Request{Name: name, Permits: 1 + (i+j)%permits, Fenced: true}
					err := locker.Do(t.Context(), l, req, func(_ context.Context, lock *locker.Lock) error {
						now := used.Add(int64(req.Permits))
						defer used.Add(-int64(req.Permits))
						most.Store(max(most.Load(), now))
						mu.Lock()
						defer mu.Unlock()
						fences = append(fences, lock.Fence())
						if now > permits {
							return fmt.Errorf("%d permits are held", now)
						}
						return nil
					})
					match(t, err)
				}
			})
		}
	}
	wg.Wait()
	slices.Sort(fences)
	if n := len(slices.Compact(fences)); n != 2*len(clients.All)*3*rounds {
		t.Errorf("%d different tokens of %d holds", n, 2*len(clients.All)*3*rounds)
	}
	if most.Load() < 2 {
		t.Error("permits were never held at the same time")
	}
	if n := server.MustCommand(t, "EXISTS", name); n != int64(0) {
		t.Error("the key is still there")
	}
}
