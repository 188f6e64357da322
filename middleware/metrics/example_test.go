package metrics_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v4"
	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lockertest"
	"github.com/holdfast-go/holdfast/middleware/metrics"
	"github.com/holdfast-go/holdfast/middleware/retry"
)

// counted prints the counter of acquisitions.
func counted(reader sdkmetric.Reader) {
	var all metricdata.ResourceMetrics
	if err := reader.Collect(context.Background(), &all); err != nil {
		fmt.Println(err)
	}
	for _, metric := range all.ScopeMetrics[0].Metrics {
		if sum, ok := metric.Data.(metricdata.Sum[int64]); ok && metric.Name == "holdfast.lock.acquisitions" {
			for _, p := range sum.DataPoints {
				fmt.Print(p.Value)
				for _, key := range []attribute.Key{"lock.group", "outcome", "strategy", "provider"} {
					value, _ := p.Attributes.Value("holdfast." + key)
					fmt.Print(" ", value.AsString())
				}
				fmt.Println()
			}
		}
	}
}

// Lock names are mapped to a few groups. Outside retry, an acquisition counts once, however many
// attempts it makes.
func ExampleNew() {
	reader := sdkmetric.NewManualReader()
	provider := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))
	measure := locker.Must(metrics.New(metrics.Config{
		MeterProvider: provider,
		Group: func(name string) string {
			group, _, _ := strings.Cut(name, ":")
			return group
		},
	}))
	wait := locker.Must(retry.New(retry.Config{MaxAttempts: 3, Policy: func() backoff.BackOff {
		return backoff.NewConstantBackOff(time.Millisecond)
	}}))
	server := lockertest.New()
	server.Hold(locker.Request{Name: "invoice:42"})

	_, _ = locker.Chain(server, measure, wait).Acquire(context.Background(), locker.Request{Name: "invoice:42"})
	counted(reader)
	// Output: 1 invoice held lockertest memory
}

// Inside retry, each of the three attempts counts.
func ExampleNew_insideRetry() {
	reader := sdkmetric.NewManualReader()
	measure := locker.Must(metrics.New(metrics.Config{
		MeterProvider: sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)),
		Group:         func(string) string { return "all" },
	}))
	wait := locker.Must(retry.New(retry.Config{MaxAttempts: 3, Policy: func() backoff.BackOff {
		return backoff.NewConstantBackOff(time.Millisecond)
	}}))
	server := lockertest.New()
	server.Hold(locker.Request{Name: "invoice:42"})

	_, _ = locker.Chain(server, wait, measure).Acquire(context.Background(), locker.Request{Name: "invoice:42"})
	counted(reader)
	// Output: 3 all held lockertest memory
}
