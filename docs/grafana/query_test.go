package grafana_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/holdfast-go/holdfast/internal/effort"
)

// variables are Grafana's values of its own variables, outside of strings.
var variables = strings.NewReplacer("$__rate_interval", "5m", "$__range", "1h")

// query is the parts of a PromQL expression.
type query struct {
	metrics []string
	groups  []string // its grouping labels
	faults  []string
}

func isRange(node parser.Node) bool {
	_, ok := node.(*parser.MatrixSelector)
	return ok
}

// parse reads a query, and checks its names and labels against the served ones.
func parse(text string, served series) query {
	expr, err := parser.NewParser(parser.Options{}).ParseExpr(variables.Replace(text))
	if err != nil {
		return query{faults: []string{err.Error()}}
	}
	var q query
	var known []string // labels of the requested series
	parser.Inspect(expr, func(node parser.Node, path []parser.Node) error {
		if b, ok := node.(*parser.BinaryExpr); ok && b.Op == parser.LUNLESS {
			if v, instant := b.LHS.(*parser.VectorSelector); instant {
				q.faults = append(q.faults, v.String()+" lacks series that have ended")
			}
		}
		if v, ok := node.(*parser.VectorSelector); ok {
			if v.OriginalOffset != 0 && !slices.ContainsFunc(path, isRange) {
				q.faults = append(q.faults, v.String()+" is empty where a scrape failed")
			}
			q.metrics = append(q.metrics, v.Name)
			has, ok := served[v.Name]
			if !ok {
				q.faults = append(q.faults, "nothing is called "+v.Name)
				return nil
			}
			known = append(known, has...)
			for _, m := range v.LabelMatchers {
				if m.Name != model.MetricNameLabel && !slices.Contains(has, m.Name) {
					q.faults = append(q.faults, fmt.Sprintf("%s has no label %s", v.Name, m.Name))
				}
			}
		}
		return nil
	})
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		if a, ok := node.(*parser.AggregateExpr); ok {
			for _, by := range a.Grouping {
				q.groups = append(q.groups, by)
				if !slices.Contains(known, by) {
					q.faults = append(q.faults, "there is no label "+by+" to group by")
				}
			}
		}
		return nil
	})
	return q
}

var labelValues = regexp.MustCompile(`^label_values\((.+), (\w+)\)$`)

// parseVariable is parse for a variable of the dashboard, with a function of Grafana.
func parseVariable(text string, served series) query {
	m := labelValues.FindStringSubmatch(text)
	if m == nil {
		return query{faults: []string{"it is not label_values(query, label)"}}
	}
	q := parse(m[1], served)
	if len(q.metrics) == 1 && !slices.Contains(served[q.metrics[0]], m[2]) {
		q.faults = append(q.faults, "there is no label "+m[2])
	}
	return q
}

// A program serves over HTTP the names and labels of the simulated hour.
func TestExampleServesTheSame(t *testing.T) {
	t.Parallel()
	effort.NeedFull(t)
	hour := simulatedHour(t).served()
	for name, has := range exampleSeries(t) {
		if !strings.HasPrefix(name, "holdfast_") {
			continue
		}
		for _, label := range has {
			// One page serves several services there; and the version of the scope is empty here.
			if label != "service_name" && label != "otel_scope_version" && !slices.Contains(hour[name], label) {
				t.Errorf("%s has no label %s in the simulated hour", name, label)
			}
		}
	}
}

func TestFaultsAreFound(t *testing.T) {
	t.Parallel()
	served := series{"a_total": {"x", "job"}, "b": nil}
	for text, want := range map[string]string{
		`sum by (x, job) (rate(a_total{job=~"$job", x!="}"}[$__rate_interval])) / sum(b)`: "",
		`sum(rate(a_total{x="1"}[$__range])`:                                              "parse error",
		`rate(a_total{x="1"})`:                                                            "expected type range vector",
		`histogram_quantile(a_total, b)`:                                                  "expected type scalar",
		`rate(a{x="1"}[$__range])`:                                                        "nothing is called a",
		`b{x="1"}`:                                                                        "b has no label x",
		`a_total{x=="1"}`:                                                                 "parse error",
		`sum by (y) (a_total)`:                                                            "there is no label y to group by",
		`a_total unless a_total offset 5m`:                                                "a_total offset 5m is empty where a scrape failed",
		`a_total unless last_over_time(a_total[5m] offset 5m)`:                            "a_total lacks series that have ended",
		`max_over_time(a_total[5m]) unless last_over_time(a_total[5m] offset 5m)`: "",
	} {
		got := strings.Join(parse(text, served).faults, "; ")
		if !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
	for text, want := range map[string]string{
		`label_values(a_total{job=~"$job"}, x)`: "", `label_values(a_total, y)`: "there is no label y",
		`label_values(x)`: "it is not label_values(query, label)", `label_values(c, x)`: "nothing is called c",
	} {
		if got := strings.Join(parseVariable(text, served).faults, "; "); !strings.HasPrefix(got, want) || want == "" && got != "" {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}
