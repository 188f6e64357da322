package metrics_test

import (
	"context"
	"errors"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lockertest"
	"github.com/holdfast-go/holdfast/locker/locktrace"
	"github.com/holdfast-go/holdfast/middleware/metrics"
)

// Every instrument has a unit and a description, and every histogram its buckets. A value that can
// decrease is not a monotonic sum.
func TestInstruments(t *testing.T) {
	bubble(t, func(t *testing.T, server *lockertest.Locker, m *measured) {
		l := locker.Chain(server, m.middleware(t, metrics.Config{HoldBuckets: []float64{1, 2}}), waitsFor(time.Second))
		lock := locker.Must(l.Acquire(t.Context(), locker.Request{Name: "job"}))
		_, _ = l.Acquire(t.Context(), locker.Request{Name: "job", MaxWait: time.Second})
		_ = lock.Renew(t.Context(), 0)
		server.Expire("job")
		_, _ = m.middleware(t, metrics.Config{})(locker.Func(func(ctx context.Context, _ locker.Request) (*locker.Lock, error) {
			locktrace.From(ctx).NodeFailing(ctx, locktrace.NodeInfo{Err: io.EOF})
			return nil, io.EOF
		})).Acquire(t.Context(), locker.Request{Name: "job"})
		data := m.data(t)
		for name, unit := range map[string]string{
			metrics.WaitDuration: "s", metrics.HoldDuration: "s", metrics.Acquisitions: "{acquisition}", metrics.Renewals: "{renewal}", metrics.RenewalFailures: "{renewal}",
			metrics.Losses: "{lock}", metrics.Holding: "{lock}", metrics.Waiting: "{waiter}",
			metrics.NodesFailing: "{node}",
		} {
			metric, ok := data[name]
			if !ok || metric.Unit != unit || metric.Description == "" {
				t.Errorf("%s: unit %q, description %q, measured %v; want unit %q", name, metric.Unit, metric.Description, ok, unit)
			}
			switch d := metric.Data.(type) {
			case metricdata.Sum[int64]:
				check.Equal(t, name+" is monotonic", d.IsMonotonic, name != metrics.Holding && name != metrics.Waiting)
			case metricdata.Histogram[float64]:
				want := metrics.DefaultWaitBuckets()
				if name == metrics.HoldDuration {
					want = []float64{1, 2}
				}
				check.EqualSlices(t, name+": buckets", d.DataPoints[0].Bounds, want)
			}
		}
		check.Equal(t, "instruments", len(data), 9)
	})
}

func TestConfig(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]metrics.Config{
		"WaitBuckets": {WaitBuckets: []float64{1, 1}}, "HoldBuckets": {HoldBuckets: []float64{-1}}, "WaitBuckets of 0": {WaitBuckets: []float64{0, 1}},
		"HoldBuckets of NaN": {HoldBuckets: []float64{math.NaN()}},
	} {
		_, err := metrics.New(cfg)
		what, _, _ := strings.Cut(name, " ")
		if invalid, ok := errors.AsType[*locker.InvalidError](err); !ok || invalid.What != "metrics.Config."+what {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, buckets := range map[string][]float64{"wait": metrics.DefaultWaitBuckets(), "hold": metrics.DefaultHoldBuckets()} {
		if !slices.IsSorted(buckets) || len(buckets) > 20 {
			t.Errorf("default buckets of %s: %v", name, buckets)
		}
	}
}

// Without an SDK nothing is recorded or allocated.
func TestNoSDK(t *testing.T) {
	l := lockertest.New()
	plain := testing.AllocsPerRun(200, func() { cycle(t, l, locker.Request{Name: "a"}) })
	for name, cfg := range map[string]metrics.Config{"global": {}, "noop": {MeterProvider: noop.NewMeterProvider()}, "placeholder": {MeterProvider: otel.GetMeterProvider()}} {
		what := name + ": Trace" // made here: the calls below count allocations
		m := locker.Must(metrics.New(cfg))(locker.Func(func(ctx context.Context, req locker.Request) (*locker.Lock, error) {
			check.Equal(t, what, locktrace.From(ctx), nil)
			return l.Acquire(ctx, req)
		}))
		got := testing.AllocsPerRun(200, func() { cycle(t, m, locker.Request{Name: "a"}) }) - plain
		check.AtMost(t, name+": allocations more", got, 0)
	}
}
