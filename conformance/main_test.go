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

// sound is the harness of TestRun.
var sound = &Harness{Dial: plain}

// mutants are flawed things of one kind, each with its sound origin and the cases for its flaw.
type mutants struct {
	*testing.T
	list []suitetest.Mutant
}

func (m *mutants) add(name string, flawed, without *Harness, caught ...string) {
	mutant := suitetest.Mutant{Name: name, Flawed: flawed.suite(), Caught: caught}
	if without != sound {
		mutant.Sound = without.suite()
	}
	m.list = append(m.list, mutant)
}

// script adds a strategy with flawed in place of sound in its scripts.
func (m *mutants) script(with func(t *testing.T, sound, flawed string) *Harness, name, sound, flawed string, caught ...string) {
	m.add(name, with(m.T, sound, flawed), with(m.T, "", ""), caught...)
}

// convict demands that each mutant fails the cases for its flaw, and that its sound origin passes
// them.
func (m *mutants) convict() {
	m.Helper()
	suitetest.Catch(m.T, m.list)
}

// The suite for locks fails too on drivers that do not wake waiters or do not close.
func TestFlawedDrivers(t *testing.T) {
	t.Parallel()
	m := mutants{T: t}
	m.add("never wakes", flawedDriver(suitetest.NeverWakes), sound, "a release wakes a waiter")
	m.add("listens to something else", flawedDriver(suitetest.ListensElsewhere), sound, "a release is published")
	m.add("stays open", flawedDriver(suitetest.StaysOpen), sound, "a closed driver ends the use of its locks")
	m.convict()
}
