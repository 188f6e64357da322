package limits

import (
	"fmt"
	"testing"

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
		held, err := locker.Must(single.New(open(), single.Config{})).Acquire(t.Context(), locker.Request{Name: name, TTL: patience})
		if err != nil {
			t.Fatalf("Acquire: %v", err)
		}
		l := waiting(open())
		before := measure()
		c := gather(t, l, n, func(int) string { return name }, func(i int) bool { return i%10 != 0 })
		check.Eventually(t, "one connection is subscribed", func() bool { return len(subscribed(t, server)) == 1 })
		report(t, before, n)
		c.cancel()
		check.Eventually(t, "all give up who are told to", func() bool { return c.gaveUp.Load() == int64(n-n/10) })
		if got := c.acquired.Load(); got != 0 {
			t.Errorf("%d acquired what another holds", got)
		}
		if err := held.Release(t.Context()); err != nil {
			t.Errorf("Release: %v", err)
		}
		c.wg.Wait()
		if got := c.acquired.Load(); got != int64(n/10) {
			t.Errorf("%d acquired it, want all who stayed, %d", got, n/10)
		}
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
			var err error
			if held[i], err = bare.Acquire(t.Context(), locker.Request{Name: name(i), TTL: patience}); err != nil {
				t.Fatalf("Acquire: %v", err)
			}
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
			if err := lock.Release(t.Context()); err != nil {
				t.Errorf("Release: %v", err)
			}
		}
		c.wg.Wait()
		if got := c.acquired.Load(); got != int64(n) {
			t.Errorf("%d acquired theirs, want %d", got, n)
		}
	})
}
