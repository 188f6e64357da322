package main

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	prometheusexporter "go.opentelemetry.io/otel/exporters/prometheus"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
)

// telemetry is the telemetry of a process, set up once: the targets of its spans and its metrics.
type telemetry struct {
	name     string // of the service
	tracers  *sdktrace.TracerProvider
	meters   *sdkmetric.MeterProvider
	registry *prometheus.Registry
	otlp     string // the collector's address, or ""
}

func newTelemetry(ctx context.Context, service string, record *recorder, otlp string) (*telemetry, error) {
	self, err := resource.Merge(resource.Default(), resource.NewSchemaless(semconv.ServiceName(service)))
	if err != nil {
		return nil, err
	}
	t := &telemetry{name: service, registry: prometheus.NewRegistry(), otlp: otlp}
	page, err := prometheusexporter.New(prometheusexporter.WithRegisterer(t.registry),
		// One page serves three services here. A process of its own needs no label for its name:
		// Prometheus gives it a job.
		prometheusexporter.WithResourceAsConstantLabels(attribute.NewAllowKeysFilter(semconv.ServiceNameKey)))
	if err != nil {
		return nil, err
	}
	traces := []sdktrace.TracerProviderOption{
		sdktrace.WithResource(self), sdktrace.WithSampler(sdktrace.AlwaysSample()), sdktrace.WithSpanProcessor(record),
	}
	meters := []sdkmetric.Option{sdkmetric.WithResource(self), sdkmetric.WithReader(page)}
	if otlp != "" {
		// Without retries, a wrong address is told of soon.
		spans, err1 := otlptracehttp.New(ctx, otlptracehttp.WithEndpoint(otlp), otlptracehttp.WithInsecure(),
			otlptracehttp.WithRetry(otlptracehttp.RetryConfig{}))
		points, err2 := otlpmetrichttp.New(ctx, otlpmetrichttp.WithEndpoint(otlp), otlpmetrichttp.WithInsecure(),
			otlpmetrichttp.WithRetry(otlpmetrichttp.RetryConfig{}))
		if err := errors.Join(err1, err2); err != nil {
			return nil, err
		}
		traces = append(traces, sdktrace.WithBatcher(spans))
		meters = append(meters, sdkmetric.WithReader(sdkmetric.NewPeriodicReader(points)))
	}
	t.tracers, t.meters = sdktrace.NewTracerProvider(traces...), sdkmetric.NewMeterProvider(meters...)
	return t, nil
}

// flush sends pending telemetry to the collector.
func (t *telemetry) flush(ctx context.Context) error {
	err := t.tracers.ForceFlush(ctx)
	if err == nil {
		err = t.meters.ForceFlush(ctx)
	}
	if err != nil {
		return fmt.Errorf("%s cannot send to the collector at %s: %w", t.name, t.otlp, err)
	}
	return nil
}

// shutdown ends the providers. They send pending telemetry.
func (t *telemetry) shutdown(ctx context.Context) error {
	return errors.Join(t.tracers.Shutdown(ctx), t.meters.Shutdown(ctx))
}

// firstError keeps errors that OpenTelemetry's SDK cannot return.
type firstError struct {
	mu  sync.Mutex
	err error
}

// Handle implements otel.ErrorHandler.
func (f *firstError) Handle(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err == nil {
		f.err = err
	}
}

func (f *firstError) get() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}
