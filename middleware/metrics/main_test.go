package metrics_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lockertest"
	"github.com/holdfast-go/holdfast/middleware/metrics"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// elapse lets fake time pass.
func elapse(d time.Duration) { time.Sleep(d) } //nolint:forbidigo // in bubbles only

// measured is an SDK whose data the test reads.
type measured struct {
	reader   *sdkmetric.ManualReader
	provider *sdkmetric.MeterProvider
}

func measure() *measured {
	reader := sdkmetric.NewManualReader()
	return &measured{reader, sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))}
}

func (m *measured) middleware(t testing.TB, cfg metrics.Config) locker.Middleware {
	t.Helper()
	cfg.MeterProvider = m.provider
	mw, err := metrics.New(cfg)
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	return mw
}

// data returns the measurements by the names of their instruments.
func (m *measured) data(t testing.TB) map[string]metricdata.Metrics {
	t.Helper()
	var all metricdata.ResourceMetrics
	if err := m.reader.Collect(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	out := map[string]metricdata.Metrics{}
	for _, scope := range all.ScopeMetrics {
		for _, metric := range scope.Metrics {
			out[metric.Name] = metric
		}
	}
	return out
}

// lines shows every data point: the instrument without its prefix, the value (count and sum of a
// histogram), the attributes.
func (m *measured) lines(t testing.TB) []string {
	t.Helper()
	var out []string
	for name, metric := range m.data(t) {
		name = strings.TrimPrefix(name, "holdfast.lock.")
		switch data := metric.Data.(type) {
		case metricdata.Sum[int64]:
			for _, p := range data.DataPoints {
				out = append(out, fmt.Sprintf("%s %d %s", name, p.Value, text(p.Attributes)))
			}
		case metricdata.Gauge[int64]:
			for _, p := range data.DataPoints {
				out = append(out, fmt.Sprintf("%s %d %s", name, p.Value, text(p.Attributes)))
			}
		case metricdata.Histogram[float64]:
			for _, p := range data.DataPoints {
				out = append(out, fmt.Sprintf("%s %d of %v %s", name, p.Count, p.Sum, text(p.Attributes)))
			}
		default:
			t.Errorf("%s is a %T", name, data)
		}
	}
	slices.Sort(out)
	return out
}

// text formats attributes, without those that all of lockertest's measurements have.
func text(set attribute.Set) string {
	all := map[string]string{}
	for _, a := range set.ToSlice() {
		all[strings.TrimPrefix(string(a.Key), "holdfast.")] = a.Value.String()
	}
	if all["provider"] == "memory" && all["strategy"] == "lockertest" {
		delete(all, "provider")
		delete(all, "strategy")
	}
	var b strings.Builder
	for _, k := range slices.Sorted(maps.Keys(all)) {
		fmt.Fprintf(&b, " %s=%s", k, all[k])
	}
	return strings.TrimPrefix(b.String(), " ")
}

func equal(t *testing.T, what string, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s are\n%s\nwant\n%s", what, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// bubble runs f in fake time.
func bubble(t *testing.T, f func(t *testing.T, server *lockertest.Locker, m *measured)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { f(t, lockertest.New(), measure()) })
}
