package metrics_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lockertest"
	"github.com/holdfast-go/holdfast/middleware/internal/observetest"
	"github.com/holdfast-go/holdfast/middleware/metrics"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var elapse, waitsFor, equal = observetest.Elapse, observetest.WaitsFor, observetest.Equal

// measured is an SDK read by the test.
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
	return locker.Must(metrics.New(cfg))
}

// data returns the measurements by the names of their instruments.
func (m *measured) data(t testing.TB) map[string]metricdata.Metrics {
	t.Helper()
	var all metricdata.ResourceMetrics
	check.Must(t, m.reader.Collect(t.Context(), &all))
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
		add := func(value any, set attribute.Set) {
			text := observetest.Without(observetest.Text(set.ToSlice()))
			out = append(out, fmt.Sprintf("%s %v %s", strings.TrimPrefix(name, "holdfast.lock."), value, text))
		}
		switch data := metric.Data.(type) {
		case metricdata.Sum[int64]:
			for _, p := range data.DataPoints {
				add(p.Value, p.Attributes)
			}
		case metricdata.Gauge[int64]:
			for _, p := range data.DataPoints {
				add(p.Value, p.Attributes)
			}
		case metricdata.Histogram[float64]:
			for _, p := range data.DataPoints {
				add(fmt.Sprintf("%d of %v", p.Count, p.Sum), p.Attributes)
			}
		default:
			t.Errorf("%s is a %T", name, data)
		}
	}
	slices.Sort(out)
	return out
}

// bubble runs f in fake time.
func bubble(t *testing.T, f func(t *testing.T, server *lockertest.Locker, m *measured)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { f(t, lockertest.New(), measure()) })
}
