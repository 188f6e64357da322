//nolint:forbidigo // fake time
package resolve_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/strategies/keylock/internal/resolve"
)

// TestRefusedRemovals checks that removals of holds known to be there are repeated within the
// budget while a server refuses them, and that all are removed soon after.
func TestRefusedRemovals(t *testing.T) {
	t.Parallel()
	for name, refusal := range map[string]error{
		"read-only replica": serverError("READONLY You can't write against a read only replica."),
		"no connection":     driver.NotSent(errors.New("connection refused")),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				const holds = 5000
				var recovered atomic.Bool
				var removed atomic.Int64
				s := newServer(func(context.Context, string, int) (bool, error) {
					if !recovered.Load() {
						return false, refusal
					}
					return true, nil
				})
				for i := range holds {
					resolve.CleanUp(s, heldResidue(fmt.Sprint(i), time.Second, func() { removed.Add(1) }))
				}
				time.Sleep(15 * time.Second)
				if rate := s.sent(5*time.Second, 15*time.Second) / 10; rate > 1000 {
					t.Errorf("%d scripts a second while all are refused, want 1,000 at most", rate)
				}
				recovered.Store(true)
				time.Sleep(10 * time.Second)
				if n := removed.Load(); n < holds {
					t.Errorf("%d of %d holds were removed within 10 s of the server's recovery", n, holds)
				}
				if err := s.Close(); err != nil {
					t.Errorf("Close: %v", err)
				}
			})
		})
	}
}
