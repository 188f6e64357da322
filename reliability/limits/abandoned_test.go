package limits

import (
	"context"
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

// Tries that were given up on a lock that is held by another cost the server nothing for long,
// whatever its TTL: most were refused, or were never sent. Before, each of them sent about 35
// scripts.
func TestAbandonedTries(t *testing.T) { //nolint:paralleltest // it counts goroutines
	effort.NeedFull(t)
	each(t, func(t *testing.T, server *redistest.Server, open func() driver.Driver) {
		const tries = 1500
		l := locker.Must(single.New(open(), single.Config{TTL: 10 * time.Minute}))
		holder, err := l.Acquire(t.Context(), locker.Request{Name: "held"})
		if err != nil {
			t.Fatal(err)
		}
		before := runtime.NumGoroutine()
		var wg sync.WaitGroup
		for range tries {
			wg.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), rand.N(20*time.Millisecond))
				defer cancel()
				if _, err := l.Acquire(ctx, locker.Request{Name: "held", NoWait: true}); err == nil {
					t.Error("got a lock that another holds")
				}
			})
		}
		wg.Wait()
		check.Eventually(t, "few goroutines are left", func() bool { return runtime.NumGoroutine() < before+100 })
		check.Eventually(t, "less than 200 commands in a second", func() bool {
			commands := server.Processed(t)
			<-time.After(time.Second)
			return server.Processed(t)-commands < 200
		})
		if err := holder.Release(t.Context()); err != nil {
			t.Errorf("Release: %v", err)
		}
	})
}
