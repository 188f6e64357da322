package reentrant_test

import (
	"testing"

	"github.com/holdfast-go/holdfast/conformance"
	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/strategies/reentrant"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	for _, client := range clients.Cover(t, "reentrant") {
		t.Run(client.Name, func(t *testing.T) {
			t.Parallel()
			conformance.Run(t, conformance.Harness{
				Name: "reentrant over " + client.Name,
				Dial: client.Dial,
				New: func(drv driver.Driver, bound conformance.Timeouts) (locker.Locker, error) {
					return reentrant.New(drv, reentrant.Config{AttemptTimeout: bound.Attempt, ReleaseTimeout: bound.Release})
				},
				Can: conformance.Capabilities{Reentrant: true, Hash: true, MinHold: true},
				On:  client.On,
			})
		})
	}
}

func TestFairConformance(t *testing.T) {
	t.Parallel()
	conformance.Run(t, conformance.Harness{
		Name: "fair reentrant over redigo",
		Dial: clients.Redigo,
		New: func(drv driver.Driver, bound conformance.Timeouts) (locker.Locker, error) {
			return reentrant.New(drv, reentrant.Config{AttemptTimeout: bound.Attempt, ReleaseTimeout: bound.Release, Fair: true})
		},
		Can: conformance.Capabilities{Reentrant: true, Hash: true, Fair: true, MinHold: true},
		On:  clients.LocksOn("redigo"),
	})
}
