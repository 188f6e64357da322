package metrics_test

import (
	"context"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
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
			"holdfast.lock.wait.duration": "s", "holdfast.lock.hold.duration": "s", "holdfast.lock.acquisitions": "{acquisition}", "holdfast.lock.renewals": "{renewal}", "holdfast.lock.renewal.failures": "{renewal}",
			"holdfast.lock.losses": "{lock}", "holdfast.lock.held": "{lock}", "holdfast.lock.waiting": "{waiter}",
			"holdfast.redlock.nodes.failing": "{node}",
		} {
			metric, ok := data[name]
			if !ok || metric.Unit != unit || metric.Description == "" {
				t.Errorf("%s: unit %q, description %q, measured %v; want unit %q", name, metric.Unit, metric.Description, ok, unit)
			}
			switch d := metric.Data.(type) {
			case metricdata.Sum[int64]:
				check.Equal(t, name+" is monotonic", d.IsMonotonic, name != "holdfast.lock.held" && name != "holdfast.lock.waiting")
			case metricdata.Histogram[float64]:
				want := documentedBuckets(t, "Buckets of the wait, in seconds")
				if name == "holdfast.lock.hold.duration" {
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
}

// The default buckets are those of docs/observability.md.
func TestDefaultBuckets(t *testing.T) {
	bubble(t, func(t *testing.T, server *lockertest.Locker, m *measured) {
		cycle(t, m.middleware(t, metrics.Config{})(server), locker.Request{Name: "job"})
		data := m.data(t)
		for name, documented := range map[string]string{
			"holdfast.lock.wait.duration": "Buckets of the wait, in seconds", "holdfast.lock.hold.duration": "Of the hold",
		} {
			got := data[name].Data.(metricdata.Histogram[float64]).DataPoints[0].Bounds
			check.EqualSlices(t, name+": buckets", got, documentedBuckets(t, documented))
			check.AtMost(t, name+": buckets", len(got), 20)
		}
	})
}

// documentedBuckets returns the numbers of the sentence "start: numbers." of docs/observability.md.
func documentedBuckets(t *testing.T, start string) (buckets []float64) {
	t.Helper()
	page := locker.Must(os.ReadFile(filepath.Join("..", "..", "docs", "observability.md")))
	_, numbers, _ := strings.Cut(strings.Join(strings.Fields(string(page)), " "), start+": ")
	numbers, _, _ = strings.Cut(numbers, ". ")
	for number := range strings.SplitSeq(numbers, ", ") {
		buckets = append(buckets, locker.Must(strconv.ParseFloat(number, 64)))
	}
	return buckets
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
