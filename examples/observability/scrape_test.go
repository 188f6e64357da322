package main

import (
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/holdfast-go/holdfast/examples/internal/program"
	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lockertest"
)

// families are metrics by their names in Prometheus.
type families map[string]*dto.MetricFamily

// serving starts the program, and returns the address of its metrics.
func serving(t *testing.T) (p *program.Running, url string) {
	t.Helper()
	p = program.Start(t, "-serve", "1m")
	out := p.ReadUntil(t, "working on")
	m := regexp.MustCompile(`(?m)^metrics {2}(http\S+)$`).FindStringSubmatch(out)
	if m == nil {
		t.Fatalf("no address in:\n%s", out)
	}
	return p, m[1]
}

func get(t *testing.T, url, accept string) (body io.Reader, header http.Header) {
	t.Helper()
	req := locker.Must(http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody))
	req.Header.Set("Accept", accept)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp := locker.Must(client.Do(req))
	t.Cleanup(func() { resp.Body.Close() })
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s", url, resp.Status)
	}
	return resp.Body, resp.Header
}

// scrape reads the format that any Prometheus can read.
func scrape(t *testing.T, url string) families {
	t.Helper()
	body, header := get(t, url, "text/plain;version=0.0.4")
	if format := expfmt.ResponseFormat(header); format.FormatType() != expfmt.TypeTextPlain {
		t.Fatalf("the format is %q", format)
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	all := locker.Must(parser.TextToMetricFamilies(body))
	return all
}

func TestScrape(t *testing.T) {
	t.Parallel()
	p, url := serving(t)
	all := scrape(t, url)

	seconds, total := "_seconds", "_total"
	wants := map[string]dto.MetricType{
		promName("holdfast.lock.wait.duration") + seconds:  dto.MetricType_HISTOGRAM,
		promName("holdfast.lock.hold.duration") + seconds:  dto.MetricType_HISTOGRAM,
		promName("holdfast.lock.acquisitions") + total:     dto.MetricType_COUNTER,
		promName("holdfast.lock.renewals") + total:         dto.MetricType_COUNTER,
		promName("holdfast.lock.renewal.failures") + total: dto.MetricType_COUNTER,
		promName("holdfast.lock.losses") + total:           dto.MetricType_COUNTER,
		promName("holdfast.lock.held"):                     dto.MetricType_GAUGE,
		promName("holdfast.lock.waiting"):                  dto.MetricType_GAUGE,
		"target_info":                                      dto.MetricType_GAUGE,
	}
	if got, want := slices.Sorted(maps.Keys(all)), slices.Sorted(maps.Keys(wants)); !slices.Equal(got, want) {
		t.Fatalf("there are %q, want %q", got, want)
	}
	for name, want := range wants {
		f := all[name]
		if f.GetType() != want || f.GetHelp() == "" {
			t.Errorf("%s is a %v, %q; want a %v with a description", name, f.GetType(), f.GetHelp(), want)
		}
	}
	got := sum(all[promName("holdfast.lock.acquisitions")+total], "holdfast_outcome", "acquired")
	check.AtLeast(t, "acquisitions that are counted", got, 10)
	check.AtLeast(t, "losses that are counted", sum(all[promName("holdfast.lock.losses")+total], "holdfast_lock_group", "report"), 1)
	for _, name := range []string{"holdfast.lock.losses", "holdfast.lock.renewal.failures"} { // a series beginning at one shows no increase
		for _, m := range all[promName(name)+total].GetMetric() {
			group := slices.ContainsFunc(m.GetLabel(), func(l *dto.LabelPair) bool { return l.GetValue() == "order" })
			if group && m.GetCounter().GetValue() != 0 {
				t.Errorf("%s: %v", name, m)
			}
		}
		if n := len(all[promName(name)+total].GetMetric()); n < 4 { // three workers' orders, and the report
			t.Errorf("%s has %d series", name, n)
		}
	}
	p.Interrupt(t)
}

// promName is an instrument's name as Prometheus has it, but for suffixes.
func promName(instrument string) string { return strings.ReplaceAll(instrument, ".", "_") }

func sum(f *dto.MetricFamily, label, value string) (total float64) {
	for _, m := range f.GetMetric() {
		if slices.ContainsFunc(m.GetLabel(), func(l *dto.LabelPair) bool { return l.GetName() == label && l.GetValue() == value }) {
			total += m.GetCounter().GetValue()
		}
	}
	return total
}

// Exemplars of the waiting lead to the spans of acquisitions.
func TestExemplars(t *testing.T) {
	t.Parallel()
	record := newRecorder()
	telemetry := locker.Must(newTelemetry(t.Context(), "worker", record, ""))
	w := &worker{telemetry: telemetry, locker: locker.Must(observed(lockertest.New(), telemetry))}
	page, err := serveMetrics(t.Context(), "127.0.0.1:0", team{w})
	check.Must(t, err)
	err = locker.Do(t.Context(), w.locker, locker.Request{Name: "a"}, func(context.Context, *locker.Lock) error { return nil })
	check.Must(t, err)
	body, header := get(t, page.url, string(expfmt.NewFormat(expfmt.TypeOpenMetrics)))
	if got := header.Get("Content-Type"); !strings.HasPrefix(got, "application/openmetrics-text") {
		t.Errorf("the format is %q", got)
	}
	text, err := io.ReadAll(body)
	check.Must(t, errors.Join(err, page.close(), team{w}.shutdown(t.Context())))
	for _, s := range record.stop().spans {
		id := s.SpanContext().SpanID().String()
		if got := strings.Contains(string(text), `span_id="`+id+`"`); got != (s.Name() == "acquire lock") {
			t.Errorf("there is an exemplar of %q: %t, in\n%s", s.Name(), got, text)
		}
	}
}
