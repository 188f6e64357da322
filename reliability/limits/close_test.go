package limits

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/effort"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/strategies/single"
)

// TestCloseBesideAFrozenServer checks that Close removes what abandoned acquires may leave at a
// server that is frozen when Close begins: on recovery the server may execute the removals, which
// come over other connections, before the acquires.
func TestCloseBesideAFrozenServer(t *testing.T) { //nolint:paralleltest // it counts goroutines
	effort.NeedFull(t)
	each(t, func(t *testing.T, server *redistest.Server, open func() driver.Driver) {
		const callers, rounds = 100, 2
		for range rounds {
			drv := open()
			l := locker.Must(single.New(drv, single.Config{TTL: 10 * time.Minute, AttemptTimeout: time.Second}))
			for i := range callers { // loads the script, and opens connections
				lock := locker.Must(l.Acquire(t.Context(), locker.Request{Name: fmt.Sprint("warm", i)}))
				if err := lock.Release(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if err := server.Freeze(); err != nil {
				t.Fatal(err)
			}
			var left sync.WaitGroup
			for i := range callers {
				left.Go(func() {
					//realtime:ok nobody answers, and any instant will do
					ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
					defer cancel()
					if lock, err := l.Acquire(ctx, locker.Request{Name: fmt.Sprint("abandoned", i)}); err == nil {
						t.Errorf("a frozen server granted %v", lock)
					}
				})
			}
			left.Wait()
			thawed := make(chan error, 1)
			//realtime:ok nobody answers, and any instant will do
			time.AfterFunc(300*time.Millisecond, func() { thawed <- server.Thaw() })
			closed := drv.Close()
			if err := <-thawed; err != nil {
				t.Fatal(err)
			}
			if closed != nil && !errors.Is(closed, driver.ErrCleanUpUnfinished) {
				t.Errorf("Close: %v", closed)
			}
			if n := server.MustCommand(t, "DBSIZE"); closed == nil && n != int64(0) {
				t.Errorf("%v keys are left of %d abandoned acquires, though Close returned nil", n, callers)
			}
		}
	})
}
