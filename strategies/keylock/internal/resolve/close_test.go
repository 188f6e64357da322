//nolint:forbidigo // fake time
package resolve_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/strategies/keylock/internal/resolve"
)

// TestCloseWaitsBesideARelease checks that Close waits for the clean-up of an acquire under way
// where a release of unknown outcome, which Close does not wait for, runs the cleaner.
func TestCloseWaitsBesideARelease(t *testing.T) {
	t.Parallel()
	for _, released := range []bool{false, true} {
		t.Run(fmt.Sprint("released: ", released), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var removed atomic.Bool
				s := newServer(func(_ context.Context, key string, _ int) (bool, error) {
					time.Sleep(100 * time.Millisecond)
					if key == "released" {
						return false, errCut
					}
					return true, nil
				})
				if err := s.BeginAcquire(); err != nil {
					t.Fatal(err)
				}
				closed := make(chan error, 1)
				go func() { closed <- s.Close() }()
				synctest.Wait()
				if released {
					go resolve.CleanUp(s, heldResidue("released", time.Second, func() {}))
					time.Sleep(20 * time.Millisecond)
				}
				resolve.CleanUp(s, heldResidue("won", time.Second, func() { removed.Store(true) }))
				s.EndAcquire()
				if err := <-closed; err != nil || !removed.Load() {
					t.Errorf("Close: %v, the key of the acquire is removed: %v", err, removed.Load())
				}
				time.Sleep(time.Minute)
			})
		})
	}
}
