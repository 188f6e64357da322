package metrics

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
)

// scope names this package to the SDK.
const scope = "github.com/holdfast-go/holdfast/middleware/metrics"

// instruments are the instruments of a Middleware. docs/observability.md lists their names.
type instruments struct {
	wait, hold              metric.Float64Histogram
	acquisitions, renewals  metric.Int64Counter
	renewalFailures, losses metric.Int64Counter // their series begin at zero
	held, waiting           metric.Int64UpDownCounter
	nodesFailing            metric.Int64Gauge // its sum over the nodes is how many fail now
}

func newInstruments(cfg Config) (*instruments, error) {
	m := cfg.MeterProvider.Meter(scope, metric.WithSchemaURL(semconv.SchemaURL))
	in := &instruments{}
	var errs [9]error
	in.wait, errs[0] = m.Float64Histogram("holdfast.lock.wait.duration", metric.WithUnit("s"),
		metric.WithExplicitBucketBoundaries(cfg.WaitBuckets...),
		metric.WithDescription("Time from asking for a lock to the answer, waiting included."))
	in.hold, errs[1] = m.Float64Histogram("holdfast.lock.hold.duration", metric.WithUnit("s"),
		metric.WithExplicitBucketBoundaries(cfg.HoldBuckets...),
		metric.WithDescription("Time that a lock was held, until its release was answered or it was lost."))
	in.acquisitions, errs[2] = m.Int64Counter("holdfast.lock.acquisitions", metric.WithUnit("{acquisition}"),
		metric.WithDescription("Acquisitions by what became of them."))
	in.renewals, errs[3] = m.Int64Counter("holdfast.lock.renewals", metric.WithUnit("{renewal}"),
		metric.WithDescription("Renewals by what became of them."))
	in.losses, errs[4] = m.Int64Counter("holdfast.lock.losses", metric.WithUnit("{lock}"),
		metric.WithDescription("Locks that ended without being released."))
	in.held, errs[5] = m.Int64UpDownCounter("holdfast.lock.held", metric.WithUnit("{lock}"),
		metric.WithDescription("Locks that are held now."))
	in.waiting, errs[6] = m.Int64UpDownCounter("holdfast.lock.waiting", metric.WithUnit("{waiter}"),
		metric.WithDescription("Acquisitions that had to wait, for the holder or for their turn, and have not ended."))
	in.renewalFailures, errs[7] = m.Int64Counter("holdfast.lock.renewal.failures", metric.WithUnit("{renewal}"),
		metric.WithDescription("Renewals that failed. Each is repeated while the lease lasts, by watchdog."))
	in.nodesFailing, errs[8] = m.Int64Gauge("holdfast.redlock.nodes.failing", metric.WithUnit("{node}"),
		metric.WithDescription("1 for a node of a quorum that fails now, 0 for one that failed and answers again."))
	return in, errors.Join(errs[:]...)
}

// enabled reports whether anything is recorded.
func (in *instruments) enabled(ctx context.Context) bool {
	return in.wait.Enabled(ctx) || in.hold.Enabled(ctx) || in.acquisitions.Enabled(ctx) || in.renewals.Enabled(ctx) ||
		in.renewalFailures.Enabled(ctx) || in.losses.Enabled(ctx) || in.held.Enabled(ctx) || in.waiting.Enabled(ctx) ||
		in.nodesFailing.Enabled(ctx)
}
