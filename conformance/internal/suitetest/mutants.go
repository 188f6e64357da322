// Package suitetest tests a suite: it runs cases on flawed subjects, and demands that they fail.
package suitetest

import (
	"context"
	"testing"

	"github.com/holdfast-go/holdfast/conformance/internal/suite"
)

// Mutant is a flawed subject, and the cases to catch the flaw.
type Mutant struct {
	Name   string
	Flawed *suite.Suite
	Sound  *suite.Suite // the suite without the flaw; nil: another test of the package runs all its cases
	Caught []string
}

// Catch demands, in a subtest for each mutant, that the cases for its flaw fail, and pass without
// the flaw. They run in fake time, or on a real cluster if they need one.
func Catch(t *testing.T, mutants []Mutant) {
	t.Helper()
	for _, m := range mutants {
		t.Run(m.Name, func(t *testing.T) {
			t.Parallel()
			for _, name := range m.Caught {
				kind := suite.Memory
				c := m.Flawed.Find(name, kind)
				if c == nil {
					kind = suite.Cluster
					c = m.Flawed.Find(name, kind)
				}
				if c == nil {
					t.Errorf("there is no case %q that applies", name)
					continue
				}
				if r := run(t, m.Flawed, c, kind); r.Failed() {
					t.Logf("caught by %q: %s", name, r.First())
				} else {
					t.Errorf("not caught by %q", name)
				}
				if m.Sound == nil {
					continue
				}
				if r := run(t, m.Sound, m.Sound.Find(name, kind), kind); r.Failed() {
					t.Errorf("without the flaw too %q fails: %s", name, r.First())
				}
			}
		})
	}
}

// run runs a case on a server of some kind, and returns its reports.
func run(t *testing.T, s *suite.Suite, c *suite.Case, kind suite.Kind) (r *suite.Recorder) {
	t.Helper()
	record := func(*testing.T) {
		r = suite.Record(context.Background(), c.Name, func(tb testing.TB) { s.RunMutant(tb, c, kind) })
	}
	if kind != suite.Memory {
		if record(t); r.Skipped() {
			t.Skip(r.First())
		}
		return r
	}
	suite.Bubble(t, t.Name()+" by "+c.Name, record)
	if r == nil { // a deadlock, reported by Bubble
		t.FailNow()
	}
	return r
}
