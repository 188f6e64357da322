package watchdog_test

import (
	"testing"

	"github.com/holdfast-go/holdfast/conformance"
	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/strategies/single"
	"github.com/holdfast-go/holdfast/strategies/watchdog"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	for _, client := range clients.Cover(t, "watchdog") {
		t.Run(client.Name, func(t *testing.T) {
			t.Parallel()
			conformance.Run(t, conformance.Harness{
				Name: "watchdog(single) over " + client.Name,
				Dial: client.Dial,
				New: func(drv driver.Driver, bound conformance.Timeouts) (locker.Locker, error) {
					l, err := single.New(drv, single.Config{AttemptTimeout: bound.Attempt, ReleaseTimeout: bound.Release})
					if err != nil {
						return nil, err
					}
					dog, err := watchdog.New(watchdog.Config{})
					if err != nil {
						return nil, err
					}
					return dog(l), nil
				},
				Can: conformance.Capabilities{Renews: true, MinHold: true},
				On:  client.On,
			})
		})
	}
}
