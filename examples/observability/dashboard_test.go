package main

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
)

// dashboard is what the test looks at of Grafana's JSON.
type dashboard struct {
	SchemaVersion int `json:"schemaVersion"`
	Templating    struct {
		List []struct {
			Name, Type, Definition string
			Datasource             source
		}
	}
	Panels []struct {
		ID                       int
		Type, Title, Description string
		Datasource               source
		GridPos                  struct{ X, Y, W, H int }
		FieldConfig              struct{ Defaults struct{ Unit string } }
		Targets                  []struct {
			Expr, LegendFormat, RefID string
			Datasource                source
		}
	}
}

type source struct{ Type, UID string }

var chosen = source{"prometheus", "${datasource}"}

func readDashboard(t *testing.T) dashboard {
	t.Helper()
	raw, err := os.ReadFile("../../docs/grafana/holdfast.json")
	if err != nil {
		t.Fatal(err)
	}
	var d dashboard
	if err := json.Unmarshal(raw, &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// Every panel asks for what the program serves, by the labels that it has; and all that it serves is on a panel.
func TestDashboard(t *testing.T) {
	t.Parallel()
	d := readDashboard(t)
	p, url := serving(t)
	served := series(scrape(t, url))
	p.Interrupt(t)

	var variables []string
	shown := map[string]bool{}
	for _, v := range d.Templating.List {
		variables = append(variables, v.Name)
		if v.Type == "query" {
			if v.Datasource != chosen {
				t.Errorf("$%s asks %v", v.Name, v.Datasource)
			}
			for _, fault := range faults(v.Definition, served, map[string]bool{}) {
				t.Errorf("$%s: %s: %s", v.Name, fault, v.Definition)
			}
		}
	}
	if want := []string{"datasource", "job", "instance", "group"}; !slices.Equal(variables, want) {
		t.Errorf("the variables are %q, want %q", variables, want)
	}
	for _, panel := range d.Panels {
		if panel.Type == "row" {
			continue
		}
		if panel.FieldConfig.Defaults.Unit == "" || panel.Description == "" || len(panel.Targets) == 0 || panel.Datasource != chosen {
			t.Errorf("%q lacks a unit, a description, queries or the data source", panel.Title)
		}
		for _, target := range panel.Targets {
			if target.LegendFormat == "" || target.RefID == "" || target.Datasource != chosen {
				t.Errorf("%q: %q lacks a legend, an ID or the data source", panel.Title, target.Expr)
			}
			for _, fault := range faults(target.Expr, served, shown) {
				t.Errorf("%q: %s: %s", panel.Title, fault, target.Expr)
			}
			for _, name := range regexp.MustCompile(`\{\{(\w+)\}\}`).FindAllStringSubmatch(target.LegendFormat, -1) {
				if !regexp.MustCompile(`by \([^)]*\b` + name[1] + `\b`).MatchString(target.Expr) {
					t.Errorf("%q: the legend has %s, by which %q does not group", panel.Title, name[1], target.Expr)
				}
			}
		}
	}
	for name := range served {
		family := strings.TrimSuffix(strings.TrimSuffix(name, "_sum"), "_count")
		if strings.HasPrefix(name, "holdfast_") && !shown[name] && !shown[family+"_bucket"] {
			t.Errorf("%s is on no panel", name)
		}
	}
}

// Panels do not overlap, and each has an ID of its own.
func TestDashboardLayout(t *testing.T) {
	t.Parallel()
	d := readDashboard(t)
	if d.SchemaVersion < 39 {
		t.Errorf("schemaVersion %d is out of date", d.SchemaVersion)
	}
	for i, a := range d.Panels {
		if a.GridPos.X+a.GridPos.W > 24 {
			t.Errorf("%q is too far to the right", a.Title)
		}
		for _, b := range d.Panels[:i] {
			if a.ID == b.ID {
				t.Errorf("%q and %q have one ID", a.Title, b.Title)
			}
			if p, q := a.GridPos, b.GridPos; p.X < q.X+q.W && q.X < p.X+p.W && p.Y < q.Y+q.H && q.Y < p.Y+p.H {
				t.Errorf("%q lies over %q", a.Title, b.Title)
			}
		}
	}
}

// series are the labels of what can be asked for, by name: a histogram is three.
func series(all families) map[string][]string {
	s := map[string][]string{}
	for name, f := range all {
		var names []string
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				names = append(names, l.GetName())
			}
		}
		if slices.Contains(names, "holdfast_outcome") {
			names = append(names, "error_type") // where it failed; a run without faults has no failed acquisition
		}
		if f.GetType() == dto.MetricType_HISTOGRAM {
			s[name+"_bucket"] = append(slices.Clone(names), "le")
			s[name+"_sum"], s[name+"_count"] = names, names
			continue
		}
		s[name] = names
	}
	return s
}

var (
	quoted   = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)
	selector = regexp.MustCompile(`([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{([^}]*)\})?`)
	labelled = regexp.MustCompile(`^\s*(\w+)\s*(=~|!~|!=|=)$`)
	grouping = regexp.MustCompile(`\bby \(([^)]*)\)`)
	scraped  = []string{"job", "instance"} // what Prometheus adds
	words    = []string{
		"sum", "rate", "increase", "histogram_quantile", "label_values", "job", "instance", "holdfast_lock_group",
		"__rate_interval", "__range",
	}
)

// faults tells what is wrong with the names, the labels and the brackets of a query, and notes the names in seen.
func faults(query string, served map[string][]string, seen map[string]bool) (all []string) {
	bare := quoted.ReplaceAllString(query, "")
	if !balanced(bare) {
		all = append(all, "brackets do not match")
	}
	var known []string // labels of what is asked for
	for _, m := range selector.FindAllStringSubmatch(grouping.ReplaceAllString(bare, ""), -1) {
		name, matchers := m[1], m[2]
		if slices.Contains(words, name) {
			continue
		}
		has, ok := served[name]
		if !ok {
			all = append(all, "nothing is called "+name)
			continue
		}
		seen[name] = true
		known = append(known, has...)
		for part := range strings.SplitSeq(matchers, ",") {
			label := labelled.ReplaceAllString(part, "$1")
			if matchers != "" && !slices.Contains(append(slices.Clone(scraped), has...), label) {
				all = append(all, fmt.Sprintf("%s has no label for %q", name, part))
			}
		}
	}
	for _, by := range grouping.FindAllStringSubmatch(query, -1) {
		for label := range strings.SplitSeq(by[1], ",") {
			if label = strings.TrimSpace(label); !slices.Contains(append(slices.Clone(scraped), known...), label) {
				all = append(all, fmt.Sprintf("there is no label %q to group by", label))
			}
		}
	}
	return all
}

func TestFaultsAreFound(t *testing.T) {
	t.Parallel()
	served := map[string][]string{"a_total": {"x"}, "b": nil}
	for query, want := range map[string]string{
		`sum by (x, job) (rate(a_total{job=~"$job", x!="}"}[$__rate_interval])) / sum(b)`: "",
		`sum(rate(a_total{x="1"}[$__range])`:                                              "brackets do not match",
		`sum(a_total{x="1"}]`:                                                             "brackets do not match",
		`rate(a{x="1"}[$__range])`:                                                        "nothing is called a",
		`b{x="1"}`:                                                                        `b has no label for "x="`,
		`a_total{x=="1"}`:                                                                 `a_total has no label for "x=="`,
		`sum by (y) (a_total)`:                                                            `there is no label "y" to group by`,
	} {
		if got := strings.Join(faults(query, served, map[string]bool{}), "; "); got != want {
			t.Errorf("%s: %q, want %q", query, got, want)
		}
	}
}

func balanced(query string) bool {
	var open []rune
	for _, r := range query {
		switch at := strings.IndexRune("([{)]}", r); {
		case at >= 0 && at < 3:
			open = append(open, rune(")]}"[at]))
		case at >= 3:
			if len(open) == 0 || open[len(open)-1] != r {
				return false
			}
			open = open[:len(open)-1]
		}
	}
	return len(open) == 0
}
