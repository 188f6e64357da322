package limits

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/effort"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/strategies/single"
)

// Thousands wait for one name: one in ten gets the lock when it is released, the others give up
// when they are told.
func TestManyWaitForOneName(t *testing.T) {
	effort.NeedFull(t)
	each(t, func(t *testing.T, server *redistest.Server, open func() driver.Driver) {
		const name = "job"
		const n = 10_000
		strategy := locker.Must(single.New(open(), single.Config{}))
		held := locker.Must(strategy.Acquire(t.Context(), locker.Request{Name: name, TTL: patience}))
		l := waiting(open())
		before := measure()
		c := gather(t, l, n, func(int) string { return name }, func(i int) bool { return i%10 != 0 })
		check.Eventually(t, "one connection is subscribed", func() bool { return len(subscribed(t, server)) == 1 })
		report(t, before, n)
		c.cancel()
		check.Eventually(t, "all give up who are told to", func() bool { return c.gaveUp.Load() == int64(n-n/10) })
		check.Equal(t, "who acquired what another holds", c.acquired.Load(), 0)
		check.OK(t, held.Release(t.Context()))
		c.wg.Wait()
		check.Equal(t, "who acquired it, of those who stayed", c.acquired.Load(), int64(n/10))
	})
}

// Many names are waited for over one driver: one connection hears of all, and each waiter of its
// own.
func TestManyNamesOverOneConnection(t *testing.T) {
	effort.NeedFull(t)
	each(t, func(t *testing.T, server *redistest.Server, open func() driver.Driver) {
		const n = 1_000
		name := func(i int) string { return fmt.Sprintf("job:%d", i) }
		bare := locker.Must(single.New(open(), single.Config{}))
		held := make([]*locker.Lock, n)
		for i := range held {
			held[i] = locker.Must(bare.Acquire(t.Context(), locker.Request{Name: name(i), TTL: patience}))
		}
		l := waiting(open())
		before := measure()
		c := gather(t, l, n, name, func(int) bool { return false })
		check.Eventually(t, "one connection is subscribed to all", func() bool {
			list := subscribed(t, server)
			if len(list) > 1 {
				t.Fatalf("%d connections are subscribed", len(list))
			}
			return len(list) == 1 && list[0] == n
		})
		report(t, before, n)
		for _, lock := range held {
			check.OK(t, lock.Release(t.Context()))
		}
		c.wg.Wait()
		check.Equal(t, "who acquired theirs", c.acquired.Load(), int64(n))
	})
}

// Abandoned tries for a held lock cost the server nothing for long, whatever its TTL: most were
// refused, or never sent. Before, each of them sent about 35 scripts.
func TestAbandonedTries(t *testing.T) { //nolint:paralleltest // it counts goroutines
	effort.NeedFull(t)
	each(t, func(t *testing.T, server *redistest.Server, open func() driver.Driver) {
		const tries = 1500
		l := locker.Must(single.New(open(), single.Config{TTL: 10 * time.Minute}))
		holder := locker.Must(l.Acquire(t.Context(), locker.Request{Name: "held"}))
		before := runtime.NumGoroutine()
		var wg sync.WaitGroup
		for range tries {
			wg.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), rand.N(20*time.Millisecond))
				defer cancel()
				_, err := l.Acquire(ctx, locker.Request{Name: "held", NoWait: true})
				check.Equal(t, "got a lock that another holds", err == nil, false)
			})
		}
		wg.Wait()
		check.Eventually(t, "few goroutines are left", func() bool { return runtime.NumGoroutine() < before+100 })
		check.Eventually(t, "less than 200 commands in a second", func() bool {
			commands := server.Processed(t)
			<-time.After(time.Second)
			return server.Processed(t)-commands < 200
		})
		check.OK(t, holder.Release(t.Context()))
	})
}
