package metrics

import (
	"fmt"
	"slices"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/middleware/internal/telemetry"
)

// Config configures the metrics. The zero Config works.
type Config struct {
	// MeterProvider makes the instruments. Default: the global one (otel.SetMeterProvider), even if
	// it is set later.
	MeterProvider metric.MeterProvider
	// Attributes are put on every measurement, to distinguish several Middlewares. Default: none.
	Attributes []attribute.KeyValue
	// Group maps a lock's name to its group, the attribute holdfast.lock.group: "invoice:42" to
	// "invoice". It must have few results, since each makes time series of its own; "" leaves the
	// attribute out. It must be safe for concurrent use. Default: nil, names do not appear in
	// metrics at all.
	Group func(name string) string
	// WaitBuckets are the upper bounds of holdfast.lock.wait.duration, in seconds, increasing.
	// Default: 18, from a round trip in one data centre to ten minutes in a queue.
	WaitBuckets []float64
	// HoldBuckets are the upper bounds of holdfast.lock.hold.duration, in seconds, increasing.
	// Default: 17, from a millisecond to a day.
	HoldBuckets []float64
}

// The default buckets. docs/observability.md lists them.
var (
	waitBuckets = []float64{0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 600}
	holdBuckets = []float64{0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 600, 1800, 3600, 21600, 86400}
)

// New returns a measuring Middleware. It may wrap several Lockers. Errors: ErrInvalid; those of the
// MeterProvider.
func New(cfg Config) (locker.Middleware, error) {
	for _, b := range []struct {
		what    string
		buckets *[]float64
		usual   []float64
	}{
		{"WaitBuckets", &cfg.WaitBuckets, waitBuckets},
		{"HoldBuckets", &cfg.HoldBuckets, holdBuckets},
	} {
		if len(*b.buckets) == 0 {
			*b.buckets = b.usual
		}
		if err := validate(b.what, *b.buckets); err != nil {
			return nil, err
		}
	}
	if cfg.MeterProvider == nil {
		cfg.MeterProvider = otel.GetMeterProvider() // it uses the one set later
	}
	cfg.Attributes = slices.Clone(cfg.Attributes)
	in, err := newInstruments(cfg)
	if err != nil {
		return nil, err
	}
	return telemetry.Middleware("metrics", newMeter(cfg, in).acquire), nil
}

func validate(what string, buckets []float64) error {
	for i, b := range buckets {
		if !(b > 0) || i > 0 && b <= buckets[i-1] { // nor NaN
			return &locker.InvalidError{
				What: "metrics.Config." + what, Got: fmt.Sprintf("%v", buckets),
				Allowed: "positive numbers, each larger than the one before",
			}
		}
	}
	return nil
}
