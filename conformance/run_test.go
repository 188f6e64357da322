package conformance

import (
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
)

func TestRun(t *testing.T) { //nolint:tparallel // Run's kinds of servers come one after the other, their cases in parallel
	t.Parallel()
	Run(t, Harness{Dial: plain})
}

func TestCasesAreWellFormed(t *testing.T) {
	t.Parallel()
	names, contracts := map[string]bool{}, map[int]bool{}
	for _, c := range Cases() {
		if names[c.Name] {
			t.Errorf("there are two cases %q", c.Name)
		}
		names[c.Name], contracts[c.Contract] = true, true
		if c.Name == "" || strings.Contains(c.Name, "/") || c.Why == "" || strings.HasSuffix(c.Why, ".") || len(c.On) == 0 {
			t.Errorf("case %q: want a name, one sentence why without its full stop, and servers", c.Name)
		}
		if !slices.Equal(slices.Compact(slices.Clone(c.On)), c.On) {
			t.Errorf("case %q names a kind of server twice", c.Name)
		}
	}
	for n := range fencing + 1 {
		if !contracts[n] {
			t.Errorf("contract %d has no case", n)
		}
	}
}

func TestMatrixKnowsWhatIsMissing(t *testing.T) {
	t.Parallel()
	full := &Harness{Dial: plain, Can: Capabilities{Shared: true, Convert: true, Reentrant: true}}
	all := new(matrix).missing(full)
	perKind := map[Kind]int{}
	for _, c := range all {
		perKind[c.kind]++
	}
	for _, k := range kinds {
		if perKind[k] == 0 {
			t.Errorf("no case is demanded on %s", k)
		}
	}
	for _, c := range cases {
		for _, k := range c.on {
			if c.can != nil && !c.can(full.Can) {
				other := []Capabilities{{}, {Hash: true}, {Renews: true}}
				if !slices.ContainsFunc(other, func(can Capabilities) bool { return c.applies(&Harness{Dial: plain, Can: can}, k) }) {
					t.Errorf("%s/%s is demanded of nobody", k, c.name)
				}
				continue
			}
			if !slices.Contains(all, cell{c.name, k}) {
				t.Errorf("%s/%s is not demanded of a provider that lacks nothing, with a strategy that can all", k, c.name)
			}
		}
	}

	var m matrix
	for _, c := range all[1:] {
		m.ran(c)
	}
	if got := m.missing(full); !slices.Equal(got, all[:1]) {
		t.Errorf("with one cell not run %v is missing, want %v", got, all[:1])
	}
	m.skip(all[0].kind)
	if got := m.missing(full); len(got) != 0 {
		t.Errorf("without a server for %s %v is missing", all[0].kind, got)
	}

	for f, gone := range map[Feature]func(cell, *testCase) bool{
		FeatureCluster:   func(c cell, _ *testCase) bool { return c.kind == Cluster },
		FeatureSentinel:  func(c cell, _ *testCase) bool { return c.kind == Sentinel },
		FeatureSubscribe: func(_ cell, c *testCase) bool { return slices.Contains(c.needs, FeatureSubscribe) },
		FeatureBatch:     func(_ cell, c *testCase) bool { return slices.Contains(c.needs, FeatureBatch) },
		FeatureReplicas:  func(_ cell, c *testCase) bool { return slices.Contains(c.needs, FeatureReplicas) },
		FeatureTLS:       func(_ cell, c *testCase) bool { return slices.Contains(c.needs, FeatureTLS) },
	} {
		h := *full
		h.Lacks = []Feature{f}
		demanded := new(matrix).missing(&h)
		for _, c := range all {
			i := slices.IndexFunc(cases, func(tc testCase) bool { return tc.name == c.name })
			if slices.Contains(demanded, c) == gone(c, &cases[i]) {
				t.Errorf("lacking %s: %s is demanded, or not, against the rule", f, c)
			}
		}
	}
}

// What runs on some kinds of servers and what runs on the others is together all that runs, and no
// cell is in both.
func TestOnPicksAmongKinds(t *testing.T) {
	t.Parallel()
	can := Capabilities{Shared: true, Convert: true, Reentrant: true}
	all := new(matrix).missing(&Harness{Dial: plain, Can: can})
	var union []cell
	for _, kind := range kinds {
		for _, c := range new(matrix).missing(&Harness{Dial: plain, Can: can, On: []Kind{kind}}) {
			if c.kind != kind {
				t.Errorf("on %s alone %s is demanded", kind, c)
			}
			union = append(union, c)
		}
	}
	if !slices.Equal(union, all) {
		t.Errorf("one kind after another %d cells are demanded, and of all kinds at once %d", len(union), len(all))
	}
}

// -short leaves out exactly what starts a cluster, Sentinels or a quorum of real servers.
func TestShort(t *testing.T) {
	t.Parallel()
	can := Capabilities{Shared: true, Convert: true, Reentrant: true}
	short := new(matrix).missing(&Harness{Dial: plain, Can: can, short: true})
	for _, c := range new(matrix).missing(&Harness{Dial: plain, Can: can}) {
		i := slices.IndexFunc(cases, func(tc testCase) bool { return tc.name == c.name })
		want := c.kind == Miniredis || c.kind == Single && !cases[i].quorum
		if got := slices.Contains(short, c); got != want {
			t.Errorf("with -short %s is demanded: %v, want %v", c, got, want)
		}
	}
}

func TestLocksOnlyLeavesTheDriverOut(t *testing.T) {
	t.Parallel()
	demanded := new(matrix).missing(&Harness{Dial: plain, LocksOnly: true})
	quorums := new(matrix).missing(&Harness{Dial: plain, LocksOnly: true, NewQuorum: func([]locker.Locker, int) (locker.Locker, error) {
		return nil, errors.ErrUnsupported
	}})
	for _, c := range cases {
		for _, k := range c.on {
			lock := c.contract != 0 && c.applies(&Harness{Dial: plain}, k)
			if got, want := slices.Contains(demanded, cell{c.name, k}), lock && !c.quorum; got != want {
				t.Errorf("%s/%s is demanded: %v, want %v", k, c.name, got, want)
			}
			if got := slices.Contains(quorums, cell{c.name, k}); got != lock {
				t.Errorf("with a quorum to prove %s/%s is demanded: %v, want %v", k, c.name, got, lock)
			}
		}
	}
}

func TestHarnessIsChecked(t *testing.T) {
	t.Parallel()
	for what, h := range map[string]Harness{
		"no Dial": {}, "an unknown kind of server": {Dial: plain, On: []Kind{"five"}}, "an unknown feature": {Dial: plain, Lacks: []Feature{"subscribe"}},
	} {
		if h.check() == nil {
			t.Errorf("%s: no error", what)
		}
	}
}

// skips names the environment variable that makes TestSkippingProvider do its work.
const skips = "HOLDFAST_CONFORMANCE_SKIPS"

// TestSkippingProvider fails, in a process that TestRunDemandsEveryCase starts.
func TestSkippingProvider(t *testing.T) {
	if os.Getenv(skips) == "" {
		t.Skip("run by TestRunDemandsEveryCase in a process of its own")
	}
	t.Parallel()
	Run(t, Harness{Dial: func(tb TB, _ Target) (driver.Driver, error) {
		tb.Skipf("not today")
		return nil, nil
	}})
}

// What a provider skips makes Run fail; a machine without a server does not, unless it is a CI's.
func TestRunDemandsEveryCase(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		run, ci  string
		wants    []string
		wantsNot string
	}{
		"skipped": {
			"^TestSkippingProvider$", "",
			[]string{"case did not run: miniredis/set takes a free key", "0 on single (no server program)"}, "case did not run: single/",
		},
		"no server in CI": {"^TestSkippingProvider$", "true", []string{"CI=true, but there is no server"}, "no server program"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", tc.run, "-test.v")
			cmd.Env = append(os.Environ(), skips+"=yes", "CI="+tc.ci, "HOLDFAST_REDIS_SERVER=/nowhere/redis-server")
			out, err := cmd.CombinedOutput()
			if err == nil {
				t.Errorf("Run passed, although a provider skipped a case or there was no server")
			}
			for _, want := range tc.wants {
				if !strings.Contains(string(out), want) {
					t.Errorf("the output does not say %q", want)
				}
			}
			if strings.Contains(string(out), tc.wantsNot) {
				t.Errorf("the output says %q", tc.wantsNot)
			}
			if t.Failed() {
				t.Logf("the output:\n%s", out)
			}
		})
	}
}
