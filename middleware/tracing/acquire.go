package tracing

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/locktrace"
	"github.com/holdfast-go/holdfast/middleware/internal/telemetry"
)

// acquire acquires from inner, below a span.
func (t *tracer) acquire(ctx context.Context, inner locker.Locker, req locker.Request) (*locker.Lock, error) {
	caller := ctx
	ctx, span := t.start(ctx, req)
	if span == nil || !span.IsRecording() {
		if span != nil {
			defer span.End()
		}
		lock, err := inner.Acquire(ctx, req)
		return lock, strip(err)
	}
	lock, err := t.record(caller, ctx, span, inner, req)
	return lock, strip(err)
}

// acquisition writes its span, and the span of its hold.
type acquisition struct {
	*tracer
	span    trace.Span
	holders []string // its links, by their traceparents
	hold    hold
}

// record acquires below a recording span.
func (t *tracer) record(
	caller, ctx context.Context, span trace.Span, inner locker.Locker, req locker.Request,
) (lock *locker.Lock, err error) {
	watched, inside := t.observer.Begin(ctx)
	a := &watched.Data
	a.tracer, a.span = t, span
	err = telemetry.ErrNoReturn
	defer func() {
		a.end(watched.End(lock, err), lock, err)
		if err == nil {
			a.begin(caller, watched, lock)
		}
	}()
	lock, err = inner.Acquire(inside, a.send(req))
	return lock, err
}

// end ends the span.
func (a *acquisition) end(r telemetry.Result, lock *locker.Lock, err error) {
	attrs := make([]attribute.KeyValue, 0, 14)
	attrs = append(attrs, keyOutcome.String(string(r.Outcome)), keyAttempts.Int(r.Attempts),
		keyContended.Bool(r.Contended), seconds(keyWaited, r.Waited))
	attrs = a.ofSource(attrs, r.Source)
	if r.Outcome == telemetry.Acquired {
		attrs = append(attrs, seconds(keyTTL, lock.TTL()))
		if fence := lock.Fence(); fence != 0 {
			attrs = append(attrs, keyFence.Int64(fence))
		}
	}
	if err != nil {
		a.link(err)
	}
	if held := telemetry.Holder(err, a.cfg.ShowOwner); held != nil {
		attrs = ofHolder(attrs, held)
	}
	if r.GaveUp {
		a.span.AddEvent("gave up", with([]attribute.KeyValue{keyOutcome.String(string(r.Outcome))}))
	}
	if r.Outcome.Failed() {
		attrs = ofError(attrs, err)
		a.span.SetStatus(codes.Error, telemetry.Text(err, a.cfg.ShowOwner))
	}
	a.span.SetAttributes(attrs...)
	a.span.End()
}

func attempted(ctx context.Context, w *telemetry.Acquisition[acquisition], info locktrace.AttemptInfo) {
	a := &w.Data
	outcome := telemetry.OfAcquire(ctx, info.Err)
	attrs := make([]attribute.KeyValue, 0, 12)
	attrs = append(attrs, keyOutcome.String(string(outcome)), seconds(keyElapsed, info.Elapsed))
	if info.Sends > 0 {
		attrs = append(attrs, keySends.Int(info.Sends))
	}
	if info.AtNode {
		attrs = append(attrs, keyPart.Bool(true))
	}
	attrs = a.ofSource(attrs, info.Source)
	if outcome.Failed() {
		attrs = ofError(attrs, info.Err)
	}
	if held := telemetry.Holder(info.Err, a.cfg.ShowOwner); held != nil {
		attrs = ofHolder(attrs, held)
	}
	a.span.AddEvent("attempt", with(attrs))
	if !info.AtNode { // the whole may be acquired although another holds a part
		a.link(info.Err)
	}
}

func waiting(w *telemetry.Acquisition[acquisition], info locktrace.WaitingInfo) {
	a := &w.Data
	attrs := make([]attribute.KeyValue, 0, 6)
	attrs = append(attrs, keyQueued.Int(info.Queued), keySubscribed.Bool(info.Subscribed))
	if info.For > 0 {
		attrs = append(attrs, seconds(keyFor, info.For))
	}
	if info.Err != nil && !errors.Is(info.Err, locker.ErrNotAcquired) {
		attrs = ofError(attrs, info.Err)
	}
	a.span.AddEvent("wait", with(attrs))
}

func woken(w *telemetry.Acquisition[acquisition], info locktrace.WokenInfo) {
	attrs := []attribute.KeyValue{keyBy.String(string(info.By)), seconds(keyWaited, info.Waited)}
	if info.From != "" && w.Data.cfg.ShowOwner {
		attrs = append(attrs, keyHolderOwner.String(telemetry.Printable(info.From)))
	}
	w.Data.span.AddEvent("woken", with(attrs))
}
