package bench

import (
	"context"
	"log/slog"
	"testing"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/middleware/logging"
	"github.com/holdfast-go/holdfast/middleware/metrics"
	"github.com/holdfast-go/holdfast/middleware/tracing"
)

type chain = []locker.Middleware

// observers make BenchmarkObserved's chains beside the one without.
var observers = []struct {
	name string
	make func(b *testing.B) chain
}{
	{"itself", func(*testing.B) chain { return nil }}, // how far the figures can be trusted
	{"tracing/sdk=none", func(*testing.B) chain { return chain{tracing.New(tracing.Config{})} }},
	{"metrics/sdk=none", func(*testing.B) chain { return chain{locker.Must(metrics.New(metrics.Config{}))} }},
	{"both/sdk=none", func(*testing.B) chain {
		return chain{tracing.New(tracing.Config{}), locker.Must(metrics.New(metrics.Config{}))}
	}},
	{"logging", func(*testing.B) chain { return chain{silent()} }},
	{"tracing/sdk=unsampled", func(b *testing.B) chain { return chain{traced(b, sdktrace.NeverSample(), batched)} }},
	// Without the goroutine woken by each span's end.
	{"tracing/sdk=unbatched", func(b *testing.B) chain { return chain{traced(b, sdktrace.AlwaysSample(), sdktrace.WithSyncer)} }},
	{"tracing/sdk=recording", func(b *testing.B) chain { return chain{traced(b, sdktrace.AlwaysSample(), batched)} }},
	{"metrics/sdk=recording", func(*testing.B) chain { return chain{measured()} }},
	{"all/sdk=recording", func(b *testing.B) chain {
		return chain{traced(b, sdktrace.AlwaysSample(), batched), measured(), silent()}
	}},
}

// traced records to an exporter that drops everything.
func traced(
	b *testing.B, sampler sdktrace.Sampler,
	processor func(sdktrace.SpanExporter) sdktrace.TracerProviderOption,
) locker.Middleware {
	provider := sdktrace.NewTracerProvider(processor(tracetest.NewNoopExporter()), sdktrace.WithSampler(sampler))
	b.Cleanup(func() { _ = provider.Shutdown(context.Background()) })
	return tracing.New(tracing.Config{TracerProvider: provider})
}

func batched(e sdktrace.SpanExporter) sdktrace.TracerProviderOption { return sdktrace.WithBatcher(e) }

func measured() locker.Middleware {
	provider := sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader()))
	return locker.Must(metrics.New(metrics.Config{MeterProvider: provider}))
}

// silent logs nothing, as nothing goes wrong.
func silent() locker.Middleware {
	return locker.Must(logging.New(logging.Config{Logger: slog.New(slog.DiscardHandler)}))
}

// BenchmarkObserved is a cycle through holdfast.New with each of the observing middlewares
// ("lock"), beside the same chain without ("bare").
func BenchmarkObserved(b *testing.B) {
	server := redistest.Start(b, redistest.Options{})
	for _, c := range clients {
		if c.name == "goredis-defaults" {
			continue
		}
		for _, o := range observers {
			b.Run(c.name+"/"+o.name, func(b *testing.B) {
				drv, _ := c.open(b, server.Addr())
				defer drv.Close()
				plain := locker.Must(holdfast.New(drv, holdfast.Config{}))
				observed := locker.Chain(plain, o.make(b)...)
				pair(b, 1, cycleOf(observed, "bench:observed", false), cycleOf(plain, "bench:observed", false))
			})
		}
	}
}
