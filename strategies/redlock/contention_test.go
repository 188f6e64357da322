package redlock_test

import (
	"fmt"
	"testing"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/strategies/redlock"
)

// Nodes that were too slow return ErrLost: nobody else holds anything.
func TestNodesThatAreTooLateAreNoContention(t *testing.T) {
	inHooked(t, 3, redlock.Config{}, func(t *testing.T, c *hookedCluster) {
		hookAll(c.n, fails(fmt.Errorf("%w: the answer came past the lease; the attempt was undone", locker.ErrLost), "acquire"), nil)
		matchNot(t, check.ErrOf(c.Acquire(t.Context(), locker.Request{Name: name, TTL: ttl})), locker.ErrNotAcquired)
	})
}

// The same where the raising finds that the node lost its data, and another node is down.
func TestLossWhileRaisingIsNoContention(t *testing.T) {
	inHooked(t, 3, redlock.Config{}, func(t *testing.T, c *hookedCluster) {
		match(t, mint(c.n[1].Locker, 5))
		c.n[0].hook(on("raise fence", func() { c.n[0].Forget(name) }), nil)
		c.n[2].hook(fails(errDown, "acquire"), nil)
		_, err := c.Acquire(t.Context(), locker.Request{Name: name, TTL: ttl, Fenced: true})
		matchNot(t, err, locker.ErrNotAcquired)
	})
}
