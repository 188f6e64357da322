package keylock_test

import (
	"testing"

	"github.com/holdfast-go/holdfast/conformance"
	"github.com/holdfast-go/holdfast/conformance/drivertest"
	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/strategies/keylock"
)

func TestExampleConforms(t *testing.T) {
	t.Parallel()
	conformance.Run(t, conformance.Harness{
		Name: "the example over goredis",
		Dial: clients.Goredis,
		New: func(drv driver.Driver, bound conformance.Timeouts) (locker.Locker, error) {
			return newExclusive(drv, keylock.Config{AttemptTimeout: bound.Attempt, ReleaseTimeout: bound.Release})
		},
		Can: conformance.Capabilities{Hash: true},
		On:  []drivertest.Kind{drivertest.Memory, drivertest.Single},
	})
}
