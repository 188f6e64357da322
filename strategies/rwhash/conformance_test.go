package rwhash_test

import (
	"testing"

	"github.com/holdfast-go/holdfast/conformance"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/strategies/internal/locktest"
	"github.com/holdfast-go/holdfast/strategies/rwhash"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	locktest.Conformance(t, "rwhash", conformance.Harness{
		New: func(drv driver.Driver, bound conformance.Timeouts) (locker.Locker, error) {
			return rwhash.New(drv, rwhash.Config{AttemptTimeout: bound.Attempt, ReleaseTimeout: bound.Release})
		},
		Can: conformance.Capabilities{Shared: true, Convert: true, Hash: true, MinHold: true, Fair: true},
	})
}
