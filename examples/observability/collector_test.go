package main

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	collectormetrics "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	collectortrace "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	otlptrace "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/holdfast-go/holdfast/examples/internal/program"
	"github.com/holdfast-go/holdfast/internal/check"
)

// collector takes OTLP over HTTP, as https://opentelemetry.io/docs/specs/otlp/#otlphttp has it.
type collector struct {
	t *testing.T

	mu          sync.Mutex
	spans       map[string]*otlptrace.Span // by their IDs
	services    map[string]string          // by the IDs of spans
	instruments map[string][]string        // the sending services of each
}

func newCollector(t *testing.T) *collector {
	return &collector{t: t, spans: map[string]*otlptrace.Span{}, services: map[string]string{}, instruments: map[string][]string{}}
}

func (c *collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body io.Reader = r.Body
	if r.Header.Get("Content-Encoding") == "gzip" {
		unzipped, err := gzip.NewReader(r.Body)
		if err != nil {
			c.t.Error(err)
			return
		}
		body = unzipped
	}
	raw, err := io.ReadAll(body)
	if err != nil {
		c.t.Error(err)
		return
	}
	check.Equal(c.t, "content type", r.Header.Get("Content-Type"), "application/x-protobuf")
	c.mu.Lock()
	defer c.mu.Unlock()
	var reply proto.Message
	switch r.URL.Path {
	case "/v1/traces":
		var got collectortrace.ExportTraceServiceRequest
		c.decode(raw, &got)
		c.takeSpans(&got)
		reply = &collectortrace.ExportTraceServiceResponse{}
	case "/v1/metrics":
		var got collectormetrics.ExportMetricsServiceRequest
		c.decode(raw, &got)
		c.takeMetrics(&got)
		reply = &collectormetrics.ExportMetricsServiceResponse{}
	default:
		c.t.Errorf("a request for %s", r.URL.Path)
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
	if out, err := proto.Marshal(reply); err == nil {
		_, _ = w.Write(out)
	}
}

func (c *collector) decode(raw []byte, to proto.Message) {
	check.OK(c.t, proto.Unmarshal(raw, to))
}

func (c *collector) takeSpans(got *collectortrace.ExportTraceServiceRequest) {
	for _, from := range got.GetResourceSpans() {
		service := valueOf(from.GetResource().GetAttributes(), "service.name")
		for _, scope := range from.GetScopeSpans() {
			for _, s := range scope.GetSpans() {
				c.spans[string(s.GetSpanId())], c.services[string(s.GetSpanId())] = s, service
			}
		}
	}
}

func (c *collector) takeMetrics(got *collectormetrics.ExportMetricsServiceRequest) {
	for _, from := range got.GetResourceMetrics() {
		for _, scope := range from.GetScopeMetrics() {
			for _, m := range scope.GetMetrics() {
				c.instruments[m.GetName()] = append(c.instruments[m.GetName()], valueOf(from.GetResource().GetAttributes(), "service.name"))
			}
		}
	}
}

func valueOf(all []*common.KeyValue, key string) string {
	for _, kv := range all {
		if kv.GetKey() == key {
			return kv.GetValue().GetStringValue()
		}
	}
	return ""
}

// A collector gets every span, with links between processes, and every instrument.
func TestCollector(t *testing.T) {
	t.Parallel()
	c := newCollector(t)
	server := httptest.NewServer(c)
	out := program.MustRun(t, "-otlp", strings.TrimPrefix(server.URL, "http://"))
	server.Close()

	c.mu.Lock()
	defer c.mu.Unlock()
	var printedSpans int
	for _, s := range spansOf(t, out) {
		if s.id != "" {
			printedSpans++
		}
	}
	check.Equal(t, "spans that arrived, of those that are printed", len(c.spans), printedSpans)
	crossing := 0
	for id, s := range c.spans {
		refused := slices.ContainsFunc(s.GetEvents(), func(e *otlptrace.Span_Event) bool {
			return e.GetName() == "attempt" && valueOf(e.GetAttributes(), "holdfast.outcome") == "held"
		})
		holders := 0
		for _, l := range s.GetLinks() {
			to, ok := c.spans[string(l.GetSpanId())]
			if !ok || !slices.Equal(to.GetTraceId(), l.GetTraceId()) || to.GetName() != "acquire lock" {
				t.Errorf("%s links to a span that did not arrive, or is no acquisition", s.GetName())
			}
			if valueOf(l.GetAttributes(), "holdfast.link") != "holder" {
				continue
			}
			holders++
			if c.services[id] != c.services[string(l.GetSpanId())] {
				crossing++
			}
		}
		if holders > 0 && !refused { // a lock kept for a woken waiter has no holder
			t.Errorf("%s of %s: refused is %t, and it links to %d holders", s.GetName(), c.services[id], refused, holders)
		}
	}
	check.AtLeast(t, "links that lead to another process", crossing, 4)
	for _, name := range []string{
		"holdfast.lock.wait.duration", "holdfast.lock.hold.duration", "holdfast.lock.acquisitions", "holdfast.lock.renewals", "holdfast.lock.renewal.failures", "holdfast.lock.losses", "holdfast.lock.held", "holdfast.lock.waiting",
	} {
		if !slices.Contains(c.instruments[name], "worker-go-redis") {
			t.Errorf("%s came from %q", name, c.instruments[name])
		}
	}
}
