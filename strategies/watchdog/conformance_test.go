package watchdog_test

import (
	"testing"

	"github.com/holdfast-go/holdfast/conformance"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/strategies/internal/locktest"
	"github.com/holdfast-go/holdfast/strategies/single"
	"github.com/holdfast-go/holdfast/strategies/watchdog"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	locktest.Conformance(t, "watchdog", conformance.Harness{
		New: func(drv driver.Driver, bound conformance.Timeouts) (locker.Locker, error) {
			cfg := single.Config{AttemptTimeout: bound.Attempt, ReleaseTimeout: bound.Release}
			l, err := single.New(drv, cfg)
			return locker.Must(watchdog.New(watchdog.Config{}))(l), err
		},
		Can: conformance.Capabilities{Renews: true, MinHold: true},
	})
}
