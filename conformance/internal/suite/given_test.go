package suite_test

import (
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/conformance/internal/suite"
	"github.com/holdfast-go/holdfast/conformance/internal/suitetest"
	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/internal/sibling"
)

// RunAt runs cases on a shared server: it reports each, leaves out those that would disturb others,
// and removes the keys of the cases alone.
func TestRunAt(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.Options{Password: "sesame"})
	s.MustCommand(t, "SET", "mine", "1")
	s.MustCommand(t, "SET", "conformance.of another run", "1")
	single := suite.OnlySingle
	write := func(t *suite.T) { key := t.Key(); t.Do(key, "SET", key+sibling.FenceSuffix, 1) }
	leave := func(t *suite.T) {
		key := t.Key()
		_, err := t.Driver().SetNX(t.Ctx, key, "v", time.Hour)
		t.OK(err, "SetNX")
	}
	soon := func(t *suite.T) { t.Do("", "SET", t.Key(), "v", "PX", 3000) }
	cases := []suite.Case{
		{Name: "passes", On: single, Run: func(t *suite.T) { t.Driver() }},
		{Name: "writes", On: single, Run: write},
		{Name: "leaves what ends soon", On: single, Run: soon},
		{Name: "fails", On: single, Run: func(t *suite.T) { t.Errorf("it failed") }},
		{Name: "panics", On: single, Run: func(*suite.T) { panic("it panicked") }},
		{Name: "counts", On: single, Run: func(t *suite.T) { t.Do("", "INFO", "stats") }},
		{Name: "stops", On: single, Own: true, Run: func(*suite.T) { panic("it ran") }},
		{Name: "quorum", On: single, Nodes: 5, Run: func(*suite.T) { panic("it ran") }},
		{Name: "waits", On: suite.OnlyMemory, Run: func(*suite.T) { panic("it ran") }},
		{Name: "moves", On: suite.OnlyCluster, Run: func(*suite.T) { panic("it ran") }},
		{Name: "leaves openly", On: single, LeavesKeys: true, Run: leave},
	}
	target := suite.Target{Kind: suite.Single, Addrs: []string{s.Addr()}, Password: s.Password()}
	results := map[string]suite.Result{}
	all := suite.Suite{Dial: suitetest.Dial, Cases: cases}
	err := all.RunAt(t.Context(), target, nil, func(r suite.Result) { results[r.Case.Name] = r })
	check.OK(t, err)
	for name, want := range map[string]struct{ failed, leftOut string }{
		"passes": {}, "writes": {}, "leaves what ends soon": {}, "leaves openly": {}, "fails": {failed: "it failed"}, "panics": {failed: "it panicked"},
		"counts": {leftOut: "INFO"}, "stops": {leftOut: "stops"}, "quorum": {leftOut: "5 servers"},
		"waits": {leftOut: "fake time"}, "moves": {leftOut: "cluster"},
	} {
		r, has := results[name]
		if !has || r.Failed != (want.failed != "") || !strings.Contains(strings.Join(r.Lines, "\n"), want.failed) ||
			(r.LeftOut != "") != (want.leftOut != "") || !strings.Contains(r.LeftOut, want.leftOut) {
			t.Errorf("%q: %+v", name, r)
		}
	}

	careless := suite.Suite{Dial: suitetest.Dial, Cases: []suite.Case{{Name: "leaves", On: single, Run: leave}, {Name: "not picked", On: single}}}
	pick := func(name string) bool { return name == "leaves" }
	err = careless.RunAt(t.Context(), target, pick, func(r suite.Result) {
		if r.Case.Name != "leaves" || r.Failed {
			t.Errorf("%+v", r)
		}
	})
	if err == nil || !strings.Contains(err.Error(), "cases left the keys") {
		t.Errorf("a case that leaves a key: %v", err)
	}
	check.Equal[any](t, "keys that are left", s.MustCommand(t, "DBSIZE"), int64(2))

	target.Password = "guess"
	if err := all.RunAt(t.Context(), target, nil, nil); err == nil || !strings.Contains(err.Error(), "WRONGPASS") {
		t.Errorf("a wrong password: %v", err)
	}
	target.Kind = suite.Cluster
	check.Equal(t, "a Cluster is accepted", all.RunAt(t.Context(), target, nil, nil) == nil, false)
}
