package tracing

import (
	"context"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/locker/locktrace"
	"github.com/holdfast-go/holdfast/middleware/internal/telemetry"
)

// hold writes the span of a hold, from any goroutine.
type hold struct {
	*tracer
	span     trace.Span
	renewals atomic.Int64 // successful ones
	over     atomic.Bool
}

// begin starts the span of a hold: a child of the caller's span, or of the acquisition's if the
// caller has none.
func (a *acquisition) begin(caller, ctx context.Context, lock *locker.Lock) {
	if lock == nil || lock.Name() == "" { // a test double's
		return
	}
	parent := caller
	if !trace.SpanContextFromContext(caller).IsValid() {
		parent = ctx
	}
	link := trace.Link{SpanContext: a.span.SpanContext(),
		Attributes: []attribute.KeyValue{keyLink.String("acquisition")}}
	_, span := a.provided().Start(parent, "hold lock", internal, with(a.ofLock(lock)), trace.WithLinks(link))
	if !span.IsRecording() {
		span.End()
		return
	}
	a.hold.tracer, a.hold.span = a.tracer, span
	lock.Hold().WrapContext(func(ctx context.Context) context.Context { return trace.ContextWithSpan(ctx, span) })
	lock.Hold().Wrap(func(inner lease.Lease) lease.Lease {
		if inner == nil {
			return nil
		}
		return &convertedLease{inner, span, a.sends()}
	})
	lock.Hold().Trace(ctx, a.holds)
}

func (h *hold) renewed(info locktrace.RenewedInfo) {
	if telemetry.Overtaken(info.Err) {
		return
	}
	outcome := telemetry.OfRenew(info.Err)
	attrs := make([]attribute.KeyValue, 0, 4)
	attrs = append(attrs, keyOutcome.String(string(outcome)), seconds(keyTTL, info.TTL))
	if info.Err != nil {
		attrs = ofError(attrs, info.Err)
	} else {
		h.renewals.Add(1)
	}
	h.span.AddEvent("renew", with(attrs))
}

// end ends the span, once: a lost lock may be released later.
func (h *hold) end(outcome telemetry.Outcome, err error) {
	if h.over.Swap(true) {
		return
	}
	attrs := make([]attribute.KeyValue, 0, 4)
	attrs = append(attrs, keyOutcome.String(string(outcome)), keyRenewals.Int64(h.renewals.Load()))
	if outcome.Failed() {
		attrs = ofError(attrs, err)
		h.span.SetStatus(codes.Error, telemetry.Text(err, h.cfg.ShowOwner))
	}
	h.span.SetAttributes(attrs...)
	h.span.End()
}

// convertedLease adds an event to the span for each conversion, and the trace context to a new
// note. It leaves all else alone.
type convertedLease struct {
	lease.Lease
	span trace.Span // of the hold
	from string     // the traceparent in the note; "": none
}

// Do implements lease.Lease.
func (l *convertedLease) Do(ctx context.Context, op lease.Op) (lease.Result, error) {
	if op.Kind == lease.OpNote && l.from != "" {
		op.Note, _ = telemetry.JoinNote(op.Note, l.from, locker.MaxNameLen)
	}
	result, err := l.Lease.Do(ctx, op)
	if op.Kind != lease.OpConvert {
		return result, err
	}
	attrs := []attribute.KeyValue{keyMode.String(op.Mode.String())}
	switch {
	case err == nil:
		attrs = append(attrs, keyOutcome.String("converted"))
	case telemetry.Holder(err, false) != nil:
		attrs = append(attrs, keyOutcome.String(string(telemetry.Held)))
	default:
		attrs = ofError(append(attrs, keyOutcome.String(string(telemetry.OfRenew(err)))), err)
	}
	l.span.AddEvent("convert", with(attrs))
	return result, strip(err)
}

// Unwrap returns the strategy's Lease.
func (l *convertedLease) Unwrap() lease.Lease { return l.Lease }
