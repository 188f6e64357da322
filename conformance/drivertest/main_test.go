package drivertest

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast/conformance/internal/suite"
	"github.com/holdfast-go/holdfast/conformance/internal/suitetest"
	"github.com/holdfast-go/holdfast/locker/driver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// dial makes a sound driver.
func dial(tb testing.TB, target Target) (driver.Driver, error) {
	return suitetest.Dial(tb, suite.Target(target))
}

func TestRun(t *testing.T) {
	t.Parallel()
	Run(t, Harness{Dial: dial})
}

func TestCasesAreWellFormed(t *testing.T) {
	t.Parallel()
	suitetest.CheckCases(t, Harness{Dial: dial}.suite())
}
