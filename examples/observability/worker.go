package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/middleware/metrics"
	"github.com/holdfast-go/holdfast/middleware/retry"
	"github.com/holdfast-go/holdfast/middleware/tracing"
	"github.com/holdfast-go/holdfast/strategies/single"
	"github.com/holdfast-go/holdfast/strategies/watchdog"
)

const (
	orderLock  = "order:17"     // all workers contend for it
	reportLock = "report:daily" // it is renewed, and then lost
	charging   = 30 * time.Millisecond
	resting    = 10 * time.Millisecond // between rounds
)

// deleteScript deletes a lock, as an operator unaware of its holder might.
var deleteScript = driver.NewScript("return redis.call('DEL', KEYS[1])")

// worker stands for a process of its own.
type worker struct {
	*client
	*telemetry
	tracer trace.Tracer
	locker locker.Locker
}

func newWorker(ctx context.Context, c *client, record *recorder, otlp string) (*worker, error) {
	t, err := newTelemetry(ctx, "worker-"+c.Name, record, otlp)
	if err != nil {
		return nil, err
	}
	strategy, err := single.New(c.Driver, single.Config{})
	if err != nil {
		return nil, err
	}
	l, err := observed(strategy, t)
	return &worker{client: c, telemetry: t, tracer: t.tracers.Tracer("examples/observability"), locker: l}, err
}

// observed puts tracing and metrics around the usual chain. Tracing is outermost: exemplars in the
// metrics then lead to the spans of acquisitions.
func observed(strategy locker.Locker, t *telemetry) (locker.Locker, error) {
	traced := tracing.New(tracing.Config{TracerProvider: t.tracers})
	measured, err1 := metrics.New(metrics.Config{MeterProvider: t.meters, Group: group})
	waiting, err2 := retry.New(retry.Config{})
	renewing, err3 := watchdog.New(watchdog.Config{})
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, err
	}
	return locker.Chain(strategy, traced, measured, renewing, waiting), nil
}

// group returns the group of a lock in the metrics: "order" for all orders. Names stay out of
// them: there would be too many.
func group(name string) string {
	kind, _, _ := strings.Cut(name, ":")
	return kind
}

// order charges for the order. Only one may do so at a time.
func (w *worker) order(ctx context.Context, round int) (err error) {
	note := fmt.Sprintf("round %d", round)
	ctx, end := w.span(ctx, note)
	defer func() { end(err) }()
	req := locker.Request{Name: orderLock, Fenced: true, Note: note}
	return locker.Do(ctx, w.locker, req, func(ctx context.Context, _ *locker.Lock) (err error) {
		ctx, end := w.span(ctx, "charge")
		defer func() { end(err) }()
		return pause(ctx, charging)
	})
}

// report writes the daily report, until its lock is lost.
func (w *worker) report(ctx context.Context, others team) (err error) {
	base := ctx
	ctx, end := w.span(ctx, "daily report")
	defer func() { end(err) }()
	req := locker.Request{Name: reportLock, Note: "daily report"}
	err = locker.Do(ctx, w.locker, req, func(work context.Context, lock *locker.Lock) error {
		for _, other := range others {
			if err := other.skipReport(base); err != nil {
				return err
			}
		}
		if err := lock.Renew(work, 0); err != nil { // a step that needs all of the lease; the watchdog renews later
			return err
		}
		if _, err := w.Driver.Eval(work, deleteScript, []string{reportLock}, nil); err != nil {
			return err
		}
		return lock.Renew(work, 0) // finds out
	})
	if ctx.Err() == nil && errors.Is(err, locker.ErrLost) {
		return nil // as was to be shown
	}
	return err
}

// skipReport asks for the lock of the report once, and leaves the report to its holder.
func (w *worker) skipReport(ctx context.Context) (err error) {
	ctx, end := w.span(ctx, "daily report")
	defer func() { end(err) }()
	_, err = locker.Try(ctx, w.locker, locker.Request{Name: reportLock}, func(context.Context, *locker.Lock) error { return nil })
	return err
}

// span starts a span of the worker's own.
func (w *worker) span(ctx context.Context, name string) (_ context.Context, end func(error)) {
	ctx, span := w.tracer.Start(ctx, name) //nolint:spancheck // end ends it
	return ctx, func(err error) {          //nolint:spancheck // the same
		if err != nil {
			span.SetStatus(codes.Error, err.Error())
		}
		span.End()
	}
}

// pause waits for d, or until ctx ends: when the lock is lost, for one.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
