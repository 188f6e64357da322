package single_test

import (
	"testing"

	"github.com/holdfast-go/holdfast/conformance"
	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/strategies/single"
)

// The tests of the providers run the suite without Config.Fair and Config.Keyspace.
func TestFairConformance(t *testing.T) {
	t.Parallel()
	conformance.Run(t, conformance.Harness{
		Name: "fair single over redigo",
		Dial: clients.Redigo,
		New: func(drv driver.Driver, bound conformance.Timeouts) (locker.Locker, error) {
			return single.New(drv, single.Config{
				AttemptTimeout: bound.Attempt, ReleaseTimeout: bound.Release, Fair: true, Keyspace: keyspace,
			})
		},
		Can: conformance.Capabilities{Fair: true, MinHold: true},
		On:  clients.LocksOn("redigo"),
	})
}
