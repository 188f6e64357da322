package holdfast_test

import (
	"log/slog"
	"slices"
	"testing"
	"time"

	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/holdfast-go/holdfast/conformance"
	"github.com/holdfast-go/holdfast/conformance/drivertest"
	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/internal/effort"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/middleware/logging"
	"github.com/holdfast-go/holdfast/middleware/metrics"
	"github.com/holdfast-go/holdfast/middleware/tracing"
	"github.com/holdfast-go/holdfast/strategies/single"
	"github.com/holdfast-go/holdfast/strategies/watchdog"
)

// TestConformance runs the suite through the whole chain, everything recorded: tracing, metrics,
// logging, then retry if a case waits, the watchdog and the lock. Middleware changes no contract.
// It sees no replies of servers, and strategies are proved at clusters and Sentinels without it:
// there it runs in make test-all alone.
func TestConformance(t *testing.T) {
	t.Parallel()
	spans := trace.NewTracerProvider(trace.WithSpanProcessor(tracetest.NewSpanRecorder()))
	meters := metric.NewMeterProvider(metric.WithReader(metric.NewManualReader()))
	around := func(l locker.Locker) locker.Locker {
		return locker.Chain(l,
			tracing.New(tracing.Config{TracerProvider: spans}),
			locker.Must(metrics.New(metrics.Config{MeterProvider: meters})),
			locker.Must(logging.New(logging.Config{Logger: slog.New(slog.DiscardHandler), SlowWait: time.Millisecond})),
		)
	}
	for _, client := range clients.Cover(t, "chain") {
		if !effort.Full() {
			client.On = slices.DeleteFunc(client.On, func(kind drivertest.Kind) bool {
				return kind == drivertest.Cluster || kind == drivertest.Sentinel
			})
		}
		if len(client.On) == 0 {
			continue
		}
		t.Run(client.Name, func(t *testing.T) {
			t.Parallel()
			conformance.Run(t, conformance.Harness{
				Name: "the whole chain over " + client.Name,
				Dial: client.Dial,
				New: func(drv driver.Driver, bound conformance.Timeouts) (locker.Locker, error) {
					l, err := single.New(drv, single.Config{AttemptTimeout: bound.Attempt, ReleaseTimeout: bound.Release})
					if err != nil {
						return nil, err
					}
					return locker.Must(watchdog.New(watchdog.Config{}))(l), nil
				},
				Around: around,
				Can:    conformance.Capabilities{Renews: true, MinHold: true},
				On:     client.On,
			})
		})
	}
}
