package suite

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker/driver"
)

// A failed case reports why it exists, how to run it alone, and its server's commands with times.
func TestFailureExplainsItself(t *testing.T) {
	t.Parallel()
	s := Suite{Cases: []Case{{
		Name: "it's a case", Why: "nobody would know", Proves: "contract 0", On: OnlyMemory,
		Run: func(t *T) {
			t.Pause(time.Second)
			t.Do("k", "SET", "k", "v")
			t.Errorf("it is wrong")
		},
	}}}
	Bubble(t, t.Name(), func(t *testing.T) {
		r := Record(t.Context(), "TestLocks/memory/it's_a_case", func(tb testing.TB) { s.runCase(tb, &s.Cases[0], Memory, nil) })
		got := strings.Join(r.Lines(), "\n")
		for _, want := range []string{
			"it is wrong", "nobody would know (contract 0)",
			`-run '^TestLocks$/^memory$/^it'\''s_a_case$' github.com/holdfast-go/holdfast/conformance/internal/suite`,
			`+1.000150s  connection 1 asks "SET k v"`, `+1.000150s  connection 1 gets "OK"`,
		} {
			check.Contains(t, "report", got, want)
		}
	})
}

// A case fails with advice if its harness ignores Target.Dial.
func TestDialIsDemanded(t *testing.T) {
	t.Parallel()
	s := Suite{Dial: func(testing.TB, Target) (driver.Driver, error) { return nil, errors.New("connection refused") }}
	c := Case{Name: "a case", On: OnlyMemory, Run: func(t *T) { t.Driver() }}
	Bubble(t, t.Name(), func(t *testing.T) {
		r := Record(t.Context(), t.Name(), func(tb testing.TB) { s.runCase(tb, &c, Memory, nil) })
		check.Contains(t, "report", strings.Join(r.Lines(), "\n"), "put FeatureDial into Harness.Lacks")
	})
}
