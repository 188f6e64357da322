//realtime:ok each test runs in a bubble

package keylock_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/locker"
)

// In many calls of several processes, for random names in random order, with callers that give up,
// no two hold a name at once, none hangs, and nothing is left.
func TestSeveralInACrowd(t *testing.T) {
	const processes, callers, rounds, names = 3, 8, 10, 6
	check.InFakeTime(t, func(t *testing.T) {
		m := clients.NewMemory(t)
		var held [names]atomic.Int32
		var done, gaveUp atomic.Int32
		var all sync.WaitGroup
		for range processes {
			drv := clients.OpenMemory(t, m)
			l := locker.Must(holdfast.New(drv, holdfast.Config{}))
			for range callers {
				all.Go(func() {
					for range rounds {
						var reqs []locker.Request
						for _, n := range rand.Perm(names)[:1+rand.N(4)] {
							reqs = append(reqs, locker.Request{Name: fmt.Sprint(n), NoWait: rand.N(8) == 0})
						}
						ctx, cancel := context.WithCancel(t.Context())
						if rand.N(4) == 0 {
							time.AfterFunc(rand.N(20*time.Millisecond), cancel)
						}
						err := locker.DoAll(ctx, l, reqs, func(_ context.Context, locks *locker.Locks) error {
							for _, lock := range locks.All() {
								n := lock.Name()[0] - '0'
								check.Equal(t, "holders of "+lock.Name(), held[n].Add(1), 1)
								defer held[n].Add(-1)
							}
							sleep(rand.N(2 * time.Millisecond))
							return nil
						})
						cancel()
						switch {
						case err == nil:
							done.Add(1)
						case errors.Is(err, locker.ErrNotAcquired), errors.Is(err, context.Canceled):
							gaveUp.Add(1)
						default:
							t.Errorf("DoAll: %v", err)
						}
					}
				})
			}
		}
		start := time.Now()
		all.Wait()
		check.AtMost(t, "what all calls took", time.Since(start), time.Minute)
		check.AtLeast(t, "calls that worked", done.Load(), processes*callers*rounds/3)
		sleep(2 * time.Minute)
		check.Equal(t, "keys left", len(m.Keys()), 0)
		t.Logf("%d done, %d gave up, in %v", done.Load(), gaveUp.Load(), time.Since(start))
	})
}
