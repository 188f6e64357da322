package semaphore_test

import (
	"testing"

	"github.com/holdfast-go/holdfast/conformance"
	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/strategies/semaphore"
)

// With one permit a semaphore keeps all contracts of an exclusive lock.
func TestConformance(t *testing.T) {
	t.Parallel()
	for _, client := range clients.Cover(t, "semaphore") {
		t.Run(client.Name, func(t *testing.T) {
			t.Parallel()
			conformance.Run(t, conformance.Harness{
				Name: "semaphore over " + client.Name,
				Dial: client.Dial,
				New: func(drv driver.Driver, bound conformance.Timeouts) (locker.Locker, error) {
					return semaphore.New(drv, semaphore.Config{Permits: 1, AttemptTimeout: bound.Attempt, ReleaseTimeout: bound.Release})
				},
				NewSemaphore: func(drv driver.Driver, permits int, bound conformance.Timeouts) (locker.Locker, error) {
					return semaphore.New(drv, semaphore.Config{Permits: permits, AttemptTimeout: bound.Attempt, ReleaseTimeout: bound.Release})
				},
				Can: conformance.Capabilities{Hash: true, Fair: true, MinHold: true},
				On:  client.On,
			})
		})
	}
}
