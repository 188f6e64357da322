package locker_test

import (
	"errors"
	"testing"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
)

// TestHoldOfNoLock checks that the Hold of a Lock that is not held says so.
func TestHoldOfNoLock(t *testing.T) {
	t.Parallel()
	for what, lock := range map[string]*locker.Lock{"nil": nil, "zero": {}} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			h := lock.Hold()
			h.MarkLost(nil)
			h.ExplainExpiry(nil)
			h.Trace(t.Context(), nil)
			if err := h.Renew(t.Context()); !errors.Is(err, locker.ErrNotHeld) {
				t.Errorf("Renew: %v", err)
			}
			if err := h.Renewed(lease.Renewal{}); !errors.Is(err, locker.ErrNotHeld) {
				t.Errorf("Renewed: %v, want ErrNotHeld", err)
			}
		})
	}
}
