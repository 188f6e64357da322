package reentrant_test

import (
	"testing"

	"github.com/holdfast-go/holdfast/conformance"
	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/strategies/internal/locktest"
	"github.com/holdfast-go/holdfast/strategies/reentrant"
)

func harness(fair bool) conformance.Harness {
	return conformance.Harness{
		New: func(drv driver.Driver, bound conformance.Timeouts) (locker.Locker, error) {
			return reentrant.New(drv, reentrant.Config{
				AttemptTimeout: bound.Attempt, ReleaseTimeout: bound.Release, Fair: fair,
			})
		},
		Can: conformance.Capabilities{Reentrant: true, Hash: true, Fair: fair, MinHold: true},
	}
}

func TestConformance(t *testing.T) {
	t.Parallel()
	locktest.Conformance(t, "reentrant", harness(false))
}

func TestFairConformance(t *testing.T) {
	t.Parallel()
	h := harness(true)
	h.Name, h.Dial, h.On = "fair reentrant over redigo", clients.Redigo, clients.LocksOn("redigo")
	conformance.Run(t, h)
}
