package semaphore_test

import (
	"testing"

	"github.com/holdfast-go/holdfast/conformance"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/strategies/internal/locktest"
	"github.com/holdfast-go/holdfast/strategies/semaphore"
)

// With one permit a semaphore keeps all contracts of an exclusive lock.
func TestConformance(t *testing.T) {
	t.Parallel()
	permits := func(drv driver.Driver, permits int, bound conformance.Timeouts) (locker.Locker, error) {
		return semaphore.New(drv, semaphore.Config{
			Permits: permits, AttemptTimeout: bound.Attempt, ReleaseTimeout: bound.Release,
		})
	}
	locktest.Conformance(t, "semaphore", conformance.Harness{
		New: func(drv driver.Driver, bound conformance.Timeouts) (locker.Locker, error) {
			return permits(drv, 1, bound)
		},
		NewSemaphore: permits,
		Can:          conformance.Capabilities{Hash: true, Fair: true, MinHold: true},
	})
}
