package suitetest

import (
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/conformance/internal/suite"
)

// CheckCases demands that each case of a suite is complete and each kind of server has cases. A
// suite's Lacks, On, Short and Full must leave out exactly their cases.
func CheckCases(t *testing.T, s *suite.Suite) {
	t.Helper()
	byName, all := map[string]suite.Case{}, []suite.Cell{}
	for _, c := range s.Cases {
		if byName[c.Name].Name != "" {
			t.Errorf("there are two cases %q", c.Name)
		}
		byName[c.Name] = c
		if c.Name == "" || strings.Contains(c.Name, "/") || c.Why == "" || strings.HasSuffix(c.Why, ".") ||
			len(c.On) == 0 {
			t.Errorf("case %q: want a name, one sentence why without its full stop, and servers", c.Name)
		}
		if !slices.Equal(slices.Compact(slices.Clone(c.On)), c.On) {
			t.Errorf("case %q names a kind of server twice", c.Name)
		}
	}
	for _, k := range suite.AllKinds {
		on := len(all)
		for _, c := range s.Cases {
			if slices.Contains(c.On, k) {
				all = append(all, suite.Cell{Name: c.Name, Kind: k})
			}
		}
		if on == len(all) {
			t.Errorf("no case runs on %s", k)
		}
	}
	demands := func(what string, with *suite.Suite, want func(suite.Cell, suite.Case) bool) {
		t.Helper()
		with.Cases = s.Cases
		demanded := with.Demanded()
		for i, c := range demanded {
			if c.Kind == suite.Miniredis { // in place of Memory
				demanded[i].Kind = suite.Memory
			}
		}
		if len(demanded) != len(slices.Compact(slices.Clone(demanded))) {
			t.Errorf("%s: a case is demanded twice", what)
		}
		for _, c := range all {
			if got, want := slices.Contains(demanded, c), want(c, byName[c.Name]); got != want {
				t.Errorf("%s: %s is demanded: %v, want %v", what, c, got, want)
			}
		}
	}
	demands("lacking nothing", &suite.Suite{Full: true}, func(suite.Cell, suite.Case) bool { return true })
	for _, f := range suite.Features {
		demands("lacking "+string(f), &suite.Suite{Full: true, Lacks: []suite.Feature{f}},
			func(cell suite.Cell, c suite.Case) bool {
				switch {
				case f == suite.FeatureDial && slices.Equal(c.On, suite.OnlyMemory),
					f == suite.FeatureCluster && cell.Kind == suite.Cluster,
					f == suite.FeatureSentinel && cell.Kind == suite.Sentinel:
					return false
				}
				return !slices.Contains(c.Needs, f)
			})
	}
	for _, k := range suite.AllKinds {
		demands("on "+string(k)+" alone", &suite.Suite{Full: true, On: []suite.Kind{k}}, func(cell suite.Cell, _ suite.Case) bool {
			return cell.Kind == k
		})
	}
	demands("on miniredis alone", &suite.Suite{Full: true, On: []suite.Kind{suite.Miniredis}}, func(cell suite.Cell, c suite.Case) bool {
		return cell.Kind == suite.Memory && !slices.Equal(c.On, suite.OnlyMemory)
	})
	demands("by default", &suite.Suite{}, func(cell suite.Cell, c suite.Case) bool {
		return cell.Kind == suite.Memory || c.Nodes == 0
	})
	demands("with -short", &suite.Suite{Short: true}, func(cell suite.Cell, c suite.Case) bool {
		return cell.Kind == suite.Memory || cell.Kind == suite.Single && c.Nodes == 0
	})
}
