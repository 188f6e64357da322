// Package suitetest tests a suite: it runs cases on what is flawed, and demands that they fail.
package suitetest

import (
	"context"
	"testing"

	"github.com/holdfast-go/holdfast/conformance/internal/suite"
)

// Mutant is something flawed, and the cases that must catch the flaw.
type Mutant struct {
	Name   string
	Flawed *suite.Suite
	Sound  *suite.Suite // what it was made of; nil: another test of the package runs all cases over that
	Caught []string
}

// Catch demands, in a subtest for each mutant, that it fails the cases that were made for its flaw,
// and that these pass without the flaw. All run in fake time.
func Catch(t *testing.T, mutants []Mutant) {
	t.Helper()
	for _, m := range mutants {
		t.Run(m.Name, func(t *testing.T) {
			t.Parallel()
			for _, name := range m.Caught {
				c := m.Flawed.Find(name, suite.Memory)
				if c == nil {
					t.Errorf("there is no case %q that applies", name)
					continue
				}
				if r := run(t, m.Flawed, c); r.Failed() {
					t.Logf("caught by %q: %s", name, r.First())
				} else {
					t.Errorf("not caught by %q", name)
				}
				if m.Sound == nil {
					continue
				}
				if r := run(t, m.Sound, m.Sound.Find(name, suite.Memory)); r.Failed() {
					t.Errorf("without the flaw too %q fails: %s", name, r.First())
				}
			}
		})
	}
}

// run runs a case in a bubble, and returns what it reported.
func run(t *testing.T, s *suite.Suite, c *suite.Case) (r *suite.Recorder) {
	t.Helper()
	suite.Bubble(t, t.Name()+" by "+c.Name, func(*testing.T) {
		r = suite.Record(context.Background(), c.Name, func(tb testing.TB) { s.RunMutant(tb, c) })
	})
	if r == nil { // a deadlock, which Bubble has reported
		t.FailNow()
	}
	return r
}
