package grafana_test

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/template"
	"go.yaml.in/yaml/v3"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/effort"
)

// readAlerts reads alerts.yaml as Prometheus does.
func readAlerts(t *testing.T) []rulefmt.Rule {
	t.Helper()
	all, errs := rulefmt.ParseFile("alerts.yaml", false, model.LegacyValidation, promQL, slog.New(slog.DiscardHandler))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	var rules []rulefmt.Rule
	for _, group := range all.Groups {
		rules = append(rules, group.Rules...)
	}
	return rules
}

// evaluation is Prometheus's state of one rule: since when each of its alerts is active.
type evaluation struct {
	rulefmt.Rule

	since map[string]time.Time
}

// alert is a firing alert.
type alert struct {
	Labels      map[string]string `yaml:"exp_labels"`
	Annotations map[string]string `yaml:"exp_annotations"`
}

// firing evaluates the rule at a time after those of the calls before.
func (e *evaluation) firing(ctx context.Context, d *database, at time.Time) ([]alert, error) {
	found, err := d.queryAt(ctx, e.Expr, at)
	if err != nil {
		return nil, err
	}
	since, firing := map[string]time.Time{}, []alert(nil)
	for _, s := range found {
		id := s.Metric.String()
		since[id] = at
		if before, ok := e.since[id]; ok {
			since[id] = before
		}
		if at.Sub(since[id]) < time.Duration(e.For) {
			continue
		}
		a := alert{Labels: s.Metric.Map(), Annotations: map[string]string{}}
		data := template.AlertTemplateData(s.Metric.Map(), nil, "", s)
		for name, text := range e.Annotations {
			text = "{{$labels := .Labels}}{{$value := .Value}}" + text
			a.Annotations[name], err = template.NewTemplateExpander(ctx, text, name, data, model.TimeFromUnix(at.Unix()), nil, nil, nil).Expand()
			if err != nil {
				return nil, err
			}
		}
		maps.Copy(a.Labels, e.Labels)
		firing = append(firing, a)
	}
	e.since = since
	return firing, nil
}

// unitTests is a file for `promtool test rules`.
type unitTests struct {
	RuleFiles []string       `yaml:"rule_files"`
	Interval  model.Duration `yaml:"evaluation_interval"`
	Tests     []unitTest     `yaml:"tests"`
}

type unitTest struct {
	Name     string         `yaml:"name"`
	Interval model.Duration `yaml:"interval"`
	Input    []struct {
		Series string `yaml:"series"`
		Values string `yaml:"values"`
	} `yaml:"input_series"`
	Wants []wanted `yaml:"alert_rule_test"`
}

type wanted struct {
	Alert string         `yaml:"alertname"`
	At    model.Duration `yaml:"eval_time"`
	Fires []alert        `yaml:"exp_alerts"`
}

func readUnitTests(t *testing.T) unitTests {
	t.Helper()
	raw, err := os.ReadFile("alerts_test.yaml")
	check.Must(t, err)
	var all unitTests
	decoder := yaml.NewDecoder(strings.NewReader(string(raw)))
	decoder.KnownFields(true)
	check.Must(t, decoder.Decode(&all))
	return all
}

// load makes a database of the series, from 1970 on, as promtool does.
func (u unitTest) load(t *testing.T) *database {
	t.Helper()
	d := &database{}
	for _, in := range u.Input {
		of, values, err := promQL.ParseSeriesDesc(in.Series + " " + in.Values)
		check.Must(t, err)
		for i, v := range values {
			if !v.Omitted {
				d.add(of, time.UnixMilli(0).Add(time.Duration(i)*time.Duration(u.Interval)), v.Value)
			}
		}
	}
	return d
}

// Each alert fires, and stays quiet, as alerts_test.yaml has it. `promtool test rules` does the
// same; it is not run here, because it takes minutes to compile.
func TestAlerts(t *testing.T) {
	t.Parallel()
	effort.NeedFull(t)
	rules, all := readAlerts(t), readUnitTests(t)
	if !slices.Equal(all.RuleFiles, []string{"alerts.yaml"}) || all.Interval == 0 {
		t.Errorf("the tests are of %q, every %v", all.RuleFiles, all.Interval)
	}
	fires, quiet := map[string]bool{}, map[string]bool{}
	for _, u := range all.Tests {
		for _, want := range u.Wants {
			fires[want.Alert] = fires[want.Alert] || len(want.Fires) > 0
		}
		if name, _, _ := strings.Cut(u.Name, ":"); !slices.ContainsFunc(u.Wants, func(w wanted) bool { return len(w.Fires) > 0 }) {
			quiet[name] = true
		}
		t.Run(u.Name, func(t *testing.T) {
			t.Parallel()
			u.run(t, rules, time.Duration(all.Interval))
		})
	}
	for _, r := range rules {
		if !fires[r.Alert] || !quiet[r.Alert] {
			t.Errorf("%s: series that fire it: %t; series that do not: %t", r.Alert, fires[r.Alert], quiet[r.Alert])
		}
	}
}

func (u unitTest) run(t *testing.T, rules []rulefmt.Rule, interval time.Duration) {
	t.Helper()
	d := u.load(t)
	for _, rule := range rules {
		e, at := evaluation{Rule: rule}, time.UnixMilli(0)
		for _, want := range u.Wants { // in the order of their times
			if want.Alert != rule.Alert {
				continue
			}
			var got []alert
			for ; !at.After(time.UnixMilli(0).Add(time.Duration(want.At))); at = at.Add(interval) {
				var err error
				if got, err = e.firing(t.Context(), d, at); err != nil {
					t.Fatal(err)
				}
			}
			if g, w := fmt.Sprint(got), fmt.Sprint(want.Fires); g != w {
				t.Errorf("%s after %v:\n got %s\nwant %s", rule.Alert, want.At, g, w)
			}
		}
	}
}

// anchors are the headings of a page, as links name them.
func anchors(t *testing.T, page string) (all []string) {
	t.Helper()
	raw, err := os.ReadFile(page)
	check.Must(t, err)
	for _, heading := range regexp.MustCompile(`(?m)^#+ (\w+)$`).FindAllStringSubmatch(string(raw), -1) {
		all = append(all, strings.ToLower(heading[1]))
	}
	return all
}

// Each alert states its urgency, its event, and a page to read on.
func TestAlertTexts(t *testing.T) {
	t.Parallel()
	const runbook = "https://github.com/holdfast-go/holdfast/blob/main/docs/observability.md#"
	known := anchors(t, "../observability.md")
	for _, r := range readAlerts(t) {
		if !slices.Contains([]string{"critical", "warning", "info"}, r.Labels["severity"]) || len(r.Labels) != 1 {
			t.Errorf("%s has the labels %v", r.Alert, r.Labels)
		}
		if r.Annotations["summary"] == "" || r.Annotations["description"] == "" {
			t.Errorf("%s lacks a summary or a description", r.Alert)
		}
		anchor, ok := strings.CutPrefix(r.Annotations["runbook_url"], runbook)
		if !ok || anchor != strings.ToLower(r.Alert) || !slices.Contains(known, anchor) {
			t.Errorf("%s leads to %s", r.Alert, r.Annotations["runbook_url"])
		}
	}
}

// The alerts ask only for metrics and labels of middleware/metrics.
func TestAlertNames(t *testing.T) {
	t.Parallel()
	served := simulatedHour(t).served()
	for _, r := range readAlerts(t) {
		for _, fault := range parse(r.Expr, served).faults {
			t.Errorf("%s: %s", r.Alert, fault)
		}
	}
}

// In the simulated hour, each failure fires the alerts made for it, and no others; before the first
// failure none fires.
func TestAlertsOverAnHour(t *testing.T) {
	t.Parallel()
	effort.NeedFull(t)
	h := simulatedHour(t)
	type span struct{ from, to time.Duration }
	begins := map[string]span{ // of the alerts due
		"HoldfastNodeFails":      {nodeFails + 5*time.Minute, nodeFails + 7*time.Minute},
		"HoldfastLockLost":       {outageBegins, outageBegins + 2*time.Minute},
		"HoldfastRenewalsFail":   {outageBegins, outageEnds},
		"HoldfastUnknownOutcome": {outageBegins, outageBegins + 3*time.Minute},
		"HoldfastReleaseFails":   {releaseFails, releaseFails + 2*time.Minute},
		"HoldfastNoLeader":       {outageBegins + 2*time.Minute, outageEnds},
		"HoldfastServerErrors":   {outageBegins + 5*time.Minute, outageEnds + 5*time.Minute},
		"HoldfastWaitsLong":      {slowDownBegins + 10*time.Minute, lasting},
		"HoldfastWaitsTimeOut":   {slowDownBegins + 10*time.Minute, lasting},
	}
	never := []string{"HoldfastMisuse", "HoldfastLockForgotten", "HoldfastQuorumAtRisk", "HoldfastLeaderFlaps"}
	for _, r := range readAlerts(t) {
		want, must := begins[r.Alert]
		switch got := h.firstFiring(t, r); {
		case must && (got < want.from || got > want.to):
			t.Errorf("%s fires after %v, want %v to %v", r.Alert, got, want.from, want.to)
		case got != 0 && got < nodeFails:
			t.Errorf("%s fires after %v, before anything fails", r.Alert, got)
		case got != 0 && slices.Contains(never, r.Alert):
			t.Errorf("%s fires after %v, for nothing", r.Alert, got)
		}
	}
}

// firstFiring returns how long after the beginning of the hour the rule fires first; 0: never.
func (h *hour) firstFiring(t *testing.T, rule rulefmt.Rule) time.Duration {
	t.Helper()
	e := evaluation{Rule: rule}
	for after := time.Minute; after <= lasting; after += time.Minute {
		firing, err := e.firing(t.Context(), &h.database, h.start.Add(after))
		check.Must(t, err)
		if len(firing) > 0 {
			return after
		}
	}
	return 0
}
