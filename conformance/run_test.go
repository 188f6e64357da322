package conformance

import (
	"errors"
	"fmt"
	"testing"

	"github.com/holdfast-go/holdfast/conformance/drivertest"
	"github.com/holdfast-go/holdfast/conformance/internal/suitetest"
	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/effort"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
)

// TestRun runs the suite over a driver without a client library: in fake time, with
// HOLDFAST_TEST=full on all kinds of servers. The providers run it on real ones.
func TestRun(t *testing.T) {
	t.Parallel()
	h := *sound
	if !effort.Full() {
		h.On = []drivertest.Kind{drivertest.Memory}
	}
	Run(t, h)
}

// TestRunOverTCP runs the suite as over a client without a configurable dialer.
func TestRunOverTCP(t *testing.T) {
	t.Parallel()
	effort.NeedFull(t)
	Run(t, Harness{
		Dial: plain, Lacks: []drivertest.Feature{drivertest.FeatureDial}, On: []drivertest.Kind{drivertest.Miniredis},
	})
}

func TestCasesAreWellFormed(t *testing.T) {
	t.Parallel()
	contracts := map[int]bool{}
	for _, c := range cases {
		contracts[c.contract] = true
	}
	for n := range fencing {
		check.Equal(t, fmt.Sprintf("contract %d has a case", n+1), contracts[n+1], true)
	}
	check.Equal(t, "a case has no contract", contracts[0], false)
	full := &Harness{Dial: plain, Can: Capabilities{Shared: true, Convert: true, Reentrant: true}}
	suitetest.CheckCases(t, full.suite())
}

// Every case is demanded of a strategy with all capabilities, or of one without.
func TestEveryCaseIsDemanded(t *testing.T) {
	t.Parallel()
	demanded := map[string]bool{}
	for _, can := range []Capabilities{{Shared: true, Convert: true, Reentrant: true, MinHold: true}, {}, {Hash: true}, {Renews: true}, {Fair: true}} {
		for _, c := range (&Harness{Dial: plain, Can: can}).suite().Cases {
			demanded[c.Name] = true
		}
	}
	for _, c := range cases {
		check.Equal(t, fmt.Sprintf("%q is demanded", c.name), demanded[c.name], true)
	}
}

// A strategy is run on the nodes of a quorum if its harness has a quorum. The default has one.
func TestQuorumIsOptional(t *testing.T) {
	t.Parallel()
	strategy := func(driver.Driver, Timeouts) (locker.Locker, error) { return nil, errors.ErrUnsupported }
	quorum := func([]locker.Locker, int, Timeouts) (locker.Locker, error) { return nil, errors.ErrUnsupported }
	for _, tc := range []struct {
		harness Harness
		quorum  bool
	}{
		{Harness{}, true},
		{Harness{NewQuorum: quorum}, true},
		{Harness{New: strategy}, false},
		{Harness{New: strategy, NewQuorum: quorum}, true},
	} {
		for _, c := range cases {
			if c.permits || c.can != nil && !c.can(Capabilities{}) {
				continue
			}
			found := false
			for _, got := range tc.harness.suite().Cases {
				found = found || got.Name == c.name
			}
			if want := tc.quorum || !c.quorum; found != want {
				t.Errorf("New %v, NewQuorum %v: %q is demanded: %v, want %v", tc.harness.New != nil, tc.harness.NewQuorum != nil, c.name, found, want)
			}
		}
	}
}
