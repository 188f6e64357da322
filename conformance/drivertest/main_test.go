package drivertest

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast/conformance/internal/suite"
	"github.com/holdfast-go/holdfast/conformance/internal/suitetest"
	"github.com/holdfast-go/holdfast/internal/effort"
	"github.com/holdfast-go/holdfast/locker/driver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// dial makes a sound driver.
func dial(tb testing.TB, target Target) (driver.Driver, error) {
	return suitetest.Dial(tb, suite.Target(target))
}

// TestRun runs the suite over a driver without a client library: in fake time, with
// HOLDFAST_TEST=full on all kinds of servers. The providers run it on real ones.
func TestRun(t *testing.T) {
	t.Parallel()
	h := Harness{Dial: dial}
	if !effort.Full() {
		h.On = []Kind{Memory}
	}
	Run(t, h)
}

// TestRunOverTCP runs the suite as over a client without a configurable dialer.
func TestRunOverTCP(t *testing.T) {
	t.Parallel()
	effort.NeedFull(t)
	Run(t, Harness{Dial: dial, Lacks: []Feature{FeatureDial}, On: []Kind{Miniredis}})
}

func TestCasesAreWellFormed(t *testing.T) {
	t.Parallel()
	suitetest.CheckCases(t, Harness{Dial: dial}.suite())
}
