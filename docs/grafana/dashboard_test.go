package grafana_test

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/check"
)

// dashboard is the part of Grafana's JSON under test.
type dashboard struct {
	Title, UID    string
	SchemaVersion int
	Templating    struct{ List []variable }
	Panels        []panel
}

type variable struct {
	Name, Type, Label, Definition string
	Datasource                    datasource
	Query                         any // "prometheus", or an object with the definition
}

type panel struct {
	ID                       int
	Type, Title, Description string
	Datasource               datasource
	GridPos                  struct{ X, Y, W, H int }
	FieldConfig              struct{ Defaults defaults }
	Targets                  []target
}

type defaults struct {
	Unit       string
	Max        float64
	Thresholds struct {
		Steps []struct {
			Color string
			Value float64
		}
	}
	Custom struct {
		Stacking        struct{ Mode string }
		ThresholdsStyle struct{ Mode string }
	}
}

type target struct {
	Expr, LegendFormat, RefID string
	Instant                   bool
	Datasource                datasource
}

type datasource struct{ Type, UID string }

// chosen is the data source chosen by the user of the dashboard.
var chosen = datasource{"prometheus", "${datasource}"}

func read(t *testing.T) dashboard {
	t.Helper()
	raw, err := os.ReadFile("holdfast.json")
	check.Must(t, err)
	var d dashboard
	check.Must(t, json.Unmarshal(raw, &d))
	return d
}

// Every query parses and asks only for metrics and labels of middleware/metrics; and each of its
// metrics is on a panel.
func TestQueries(t *testing.T) {
	t.Parallel()
	d, served := read(t), simulatedHour(t).served()
	for _, v := range d.Templating.List {
		if v.Type != "query" {
			continue
		}
		for _, fault := range parseVariable(v.Definition, served).faults {
			t.Errorf("$%s: %s: %s", v.Name, fault, v.Definition)
		}
	}
	shown := map[string]bool{}
	for _, p := range d.Panels {
		for _, tg := range p.Targets {
			q := parse(tg.Expr, served)
			for _, fault := range q.faults {
				t.Errorf("%q: %s: %s", p.Title, fault, tg.Expr)
			}
			for _, name := range q.metrics {
				shown[strings.TrimSuffix(strings.TrimSuffix(name, "_bucket"), "_count")] = true
			}
			for _, named := range regexp.MustCompile(`\{\{(\w+)\}\}`).FindAllStringSubmatch(tg.LegendFormat, -1) {
				if !slices.Contains(q.groups, named[1]) {
					t.Errorf("%q: the legend has %s, by which %q does not group", p.Title, named[1], tg.Expr)
				}
			}
		}
	}
	found := 0
	for name := range served {
		if !strings.HasPrefix(name, "holdfast_") || strings.HasSuffix(name, "_sum") {
			continue
		}
		found++
		if !shown[strings.TrimSuffix(strings.TrimSuffix(name, "_bucket"), "_count")] {
			t.Errorf("%s is on no panel", name)
		}
	}
	if found != 11 { // of nine instruments, two are histograms
		t.Errorf("%d metrics are served", found)
	}
}

// Every panel can be drawn: it has a place, a unit, a data source to choose, and a description.
func TestPanels(t *testing.T) {
	t.Parallel()
	d := read(t)
	if d.SchemaVersion < 39 || d.Title == "" || d.UID == "" {
		t.Errorf("schemaVersion %d, title %q, uid %q", d.SchemaVersion, d.Title, d.UID)
	}
	titles := map[string]bool{}
	for i, p := range d.Panels {
		if p.Title == "" || titles[p.Type+p.Title] {
			t.Errorf("panel %d has the title %q, or another has it too", p.ID, p.Title)
		}
		titles[p.Type+p.Title] = true
		at := p.GridPos
		if at.W < 1 || at.H < 1 || at.X < 0 || at.Y < 0 || at.X+at.W > 24 {
			t.Errorf("%q lies outside of the grid: %+v", p.Title, at)
		}
		for _, other := range d.Panels[:i] {
			if p.ID == other.ID {
				t.Errorf("%q and %q have one ID", p.Title, other.Title)
			}
			if o := other.GridPos; at.X < o.X+o.W && o.X < at.X+at.W && at.Y < o.Y+o.H && o.Y < at.Y+at.H {
				t.Errorf("%q lies over %q", p.Title, other.Title)
			}
		}
		if p.Type != "row" {
			checkContent(t, p)
		}
	}
}

func checkContent(t *testing.T, p panel) {
	t.Helper()
	if p.FieldConfig.Defaults.Unit == "" || p.Description == "" || p.Datasource != chosen || len(p.Targets) == 0 {
		t.Errorf("%q lacks a unit, a description, the data source or queries", p.Title)
	}
	ids := map[string]bool{}
	for _, tg := range p.Targets {
		if tg.LegendFormat == "" || tg.RefID == "" || ids[tg.RefID] || tg.Datasource != chosen {
			t.Errorf("%q: %q lacks a legend, an ID of its own or the data source", p.Title, tg.Expr)
		}
		ids[tg.RefID] = true
	}
}

// The variables are asked of the chosen data source, before those that depend on them; each is
// used.
func TestVariables(t *testing.T) {
	t.Parallel()
	d := read(t)
	raw, err := os.ReadFile("holdfast.json")
	check.Must(t, err)
	var names []string
	for _, v := range d.Templating.List {
		names = append(names, v.Name)
		if v.Label == "" {
			t.Errorf("$%s has no label", v.Name)
		}
		if v.Type == "datasource" {
			if v.Query != "prometheus" {
				t.Errorf("$%s chooses among %v", v.Name, v.Query)
			}
			continue
		}
		asked, _ := v.Query.(map[string]any)
		if v.Datasource != chosen || asked["query"] != v.Definition {
			t.Errorf("$%s asks %v for %v, and is defined by %q", v.Name, v.Datasource, v.Query, v.Definition)
		}
		if !strings.Contains(string(raw), `=~\"$`+v.Name+`\"`) {
			t.Errorf("$%s is not used", v.Name)
		}
	}
	check.EqualSlices(t, "the variables", names, []string{"datasource", "job", "instance", "group", "strategy"})
	for _, used := range regexp.MustCompile(`\$\{?(\w+)`).FindAllStringSubmatch(string(raw), -1) {
		if !slices.Contains(names, used[1]) && !strings.HasPrefix(used[1], "__") {
			t.Errorf("there is no variable $%s", used[1])
		}
	}
}
