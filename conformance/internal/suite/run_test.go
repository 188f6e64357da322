package suite

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker/driver"
)

func TestMatrixKnowsWhatIsMissing(t *testing.T) {
	t.Parallel()
	s := Suite{Cases: []Case{{Name: "first", On: AllKinds}, {Name: "second", On: OneAddress}}}
	all := s.Demanded()
	var m matrix
	for _, c := range all[1:] {
		m.ran(c)
	}
	check.EqualSlices(t, "missing, with one cell not run", m.missing(all), all[:1])
	m.skip(all[0].Kind)
	check.EqualSlices(t, fmt.Sprintf("missing, without a server for %s", all[0].Kind), m.missing(all), nil)
}

func TestKindWithoutCases(t *testing.T) {
	t.Parallel()
	cases := []Case{{Name: "a case", On: AllKinds}}
	type test struct {
		s    *Suite
		want string
	}
	check.Each(t, map[string]test{
		"short":       {&Suite{Cases: cases, Short: true}, "-short leaves out the cases on cluster"},
		"not chosen":  {&Suite{Cases: cases, On: []Kind{Single}, Short: true}, "Harness.On leaves out cluster"},
		"lacking":     {&Suite{Cases: cases, Lacks: []Feature{FeatureCluster}}, "no case applies to cluster"},
		"no such one": {&Suite{Cases: []Case{{Name: "a case", On: OnlyMemory}}}, "no case applies to cluster"},
	}, func(t *testing.T, tc test) {
		check.Equal(t, "cases that run", len(tc.s.on(Cluster)), 0)
		check.Equal(t, "the reason", tc.s.whyNone(Cluster), tc.want)
	})
}

func TestSuiteIsChecked(t *testing.T) {
	t.Parallel()
	dial := func(testing.TB, Target) (driver.Driver, error) { return nil, nil }
	check.OK(t, (&Suite{Dial: dial, On: Kinds, Lacks: Features}).Check())
	for what, s := range map[string]*Suite{
		"no Dial":                   {},
		"an unknown kind of server": {Dial: dial, On: []Kind{"five"}},
		"an unknown feature":        {Dial: dial, Lacks: []Feature{"subscribe"}},
	} {
		check.Equal(t, what+" is accepted", s.Check() == nil, false)
	}
}

// skips is the environment variable that enables TestSkippingProvider.
const skips = "HOLDFAST_CONFORMANCE_SKIPS"

// TestSkippingProvider fails, in a process of TestRunDemandsEveryCase.
func TestSkippingProvider(t *testing.T) {
	if os.Getenv(skips) == "" {
		t.Skip("run by TestRunDemandsEveryCase in a process of its own")
	}
	t.Parallel()
	s := Suite{
		Cases: []Case{{Name: "a case", On: AllKinds, Run: func(t *T) { t.Driver() }}},
		Dial: func(tb testing.TB, _ Target) (driver.Driver, error) {
			tb.Skipf("not today")
			return nil, nil
		},
	}
	s.Run(t)
}

// A case skipped by a provider makes Run fail; a missing server does not, unless CI=true.
func TestRunDemandsEveryCase(t *testing.T) {
	t.Parallel()
	type test struct {
		run, ci  string
		wants    []string
		wantsNot string
	}
	check.Each(t, map[string]test{
		"skipped": {
			"^TestSkippingProvider$", "",
			[]string{"case did not run: memory/a case", "0 on single (no server program)"}, "case did not run: single/",
		},
		"no server in CI": {"^TestSkippingProvider$", "true", []string{"CI=true, but there is no server"}, "no server program"},
	}, func(t *testing.T, tc test) {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", tc.run, "-test.v")
		cmd.Env = append(os.Environ(), skips+"=yes", "CI="+tc.ci, "HOLDFAST_REDIS_SERVER=/nowhere/redis-server")
		out, err := cmd.CombinedOutput()
		check.Equal(t, "Run passed, although a provider skipped a case or there was no server", err == nil, false)
		for _, want := range tc.wants {
			check.Contains(t, "output", string(out), want)
		}
		if strings.Contains(string(out), tc.wantsNot) {
			t.Errorf("the output says %q", tc.wantsNot)
		}
		if t.Failed() {
			t.Logf("the output:\n%s", out)
		}
	})
}
