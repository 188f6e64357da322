package conformance

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast/conformance/drivertest"
	"github.com/holdfast-go/holdfast/conformance/internal/suite"
	"github.com/holdfast-go/holdfast/conformance/internal/suitetest"
	"github.com/holdfast-go/holdfast/locker/driver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// plain makes a sound driver.
func plain(tb testing.TB, target drivertest.Target) (driver.Driver, error) {
	return suitetest.Dial(tb, suite.Target(target))
}

// suspect is something flawed, and the cases that must catch it.
type suspect struct {
	name          string
	flawed, sound *Harness
	caught        []string
}

// convict demands that the suite fails on each suspect by the cases that were made for its flaw,
// and that these pass without the flaw.
func convict(t *testing.T, suspects []suspect) {
	t.Helper()
	var list []suitetest.Mutant
	for _, s := range suspects {
		list = append(list, suitetest.Mutant{Name: s.name, Flawed: s.flawed.suite(), Sound: s.sound.suite(), Caught: s.caught})
	}
	suitetest.Catch(t, list)
}

// TestFlawedDrivers demands that the suite for locks fails too on drivers that do not wake waiters
// or do not close.
func TestFlawedDrivers(t *testing.T) {
	t.Parallel()
	var suspects []suspect
	for _, f := range []struct {
		name   string
		flaw   suitetest.Driver
		caught []string
	}{
		{"never wakes", suitetest.NeverWakes, []string{"a release wakes a waiter"}},
		{"listens to something else", suitetest.ListensElsewhere, []string{"a release is published"}},
		{"stays open", suitetest.StaysOpen, []string{"a closed driver ends the use of its locks"}},
	} {
		flawed := &Harness{Dial: func(tb testing.TB, target drivertest.Target) (driver.Driver, error) {
			return f.flaw.Dial(tb, suite.Target(target))
		}}
		suspects = append(suspects, suspect{f.name, flawed, &Harness{Dial: plain}, f.caught})
	}
	convict(t, suspects)
}
