package tracing

import (
	"context"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/middleware/internal/observe"
)

// hold is what the span of a hold is written by, from any goroutine.
type hold struct {
	*tracer
	span     trace.Span
	renewals atomic.Int64 // that succeeded
	over     atomic.Bool
}

// begin starts the span of a hold: a child of the caller's span, or where there is none of the acquisition's.
func (a *acquisition) begin(caller, ctx context.Context, lock *locker.Lock) {
	if lock == nil || lock.Name() == "" { // a test double's
		return
	}
	parent := caller
	if !trace.SpanContextFromContext(caller).IsValid() {
		parent = ctx
	}
	link := trace.Link{SpanContext: a.span.SpanContext(), Attributes: []attribute.KeyValue{keyLink.String("acquisition")}}
	_, span := a.provided().Start(parent, "hold lock", internal, with(a.ofLock(lock)), trace.WithLinks(link))
	if !span.IsRecording() {
		span.End()
		return
	}
	a.hold.tracer, a.hold.span = a.tracer, span
	locker.WrapContext(lock, func(ctx context.Context) context.Context { return trace.ContextWithSpan(ctx, span) })
	locker.WrapLease(lock, func(inner locker.Lease) locker.Lease {
		if inner == nil {
			return nil
		}
		return &lease{inner, span}
	})
	locker.TraceLock(ctx, lock, a.holds)
}

func (h *hold) renewed(info locker.RenewedInfo) {
	if observe.Overtaken(info.Err) {
		return
	}
	outcome := observe.OfRenew(info.Err)
	attrs := make([]attribute.KeyValue, 0, 4)
	attrs = append(attrs, keyOutcome.String(string(outcome)), seconds(keyTTL, info.TTL))
	if info.Err != nil {
		attrs = ofError(attrs, info.Err)
	} else {
		h.renewals.Add(1)
	}
	h.span.AddEvent("renew", with(attrs))
}

// end ends the span, once: a lock that was lost may be released after that.
func (h *hold) end(outcome observe.Outcome, err error) {
	if h.over.Swap(true) {
		return
	}
	attrs := make([]attribute.KeyValue, 0, 4)
	attrs = append(attrs, keyOutcome.String(string(outcome)), keyRenewals.Int64(h.renewals.Load()))
	if outcome.Failed() {
		attrs = ofError(attrs, err)
		h.span.SetStatus(codes.Error, observe.Text(err, h.cfg.ShowOwner))
	}
	h.span.SetAttributes(attrs...)
	h.span.End()
}

// lease tells of conversions. It leaves all else alone.
type lease struct {
	locker.Lease
	span trace.Span // of the hold
}

// Do implements locker.Lease.
func (l *lease) Do(ctx context.Context, op locker.Op) (locker.Term, error) {
	term, err := l.Lease.Do(ctx, op)
	if op.Kind != locker.OpConvert {
		return term, err
	}
	attrs := []attribute.KeyValue{keyMode.String(op.Mode.String())}
	switch {
	case err == nil:
		attrs = append(attrs, keyOutcome.String("converted"))
	case observe.Holder(err, false) != nil:
		attrs = append(attrs, keyOutcome.String(string(observe.Held)))
	default:
		attrs = ofError(append(attrs, keyOutcome.String(string(observe.OfRenew(err)))), err)
	}
	l.span.AddEvent("convert", with(attrs))
	return term, strip(err)
}

// Unwrap lets renewals travel together.
func (l *lease) Unwrap() locker.Lease { return l.Lease }

// Source implements locker.Sourced.
func (l *lease) Source() locker.Source {
	if s, ok := l.Lease.(locker.Sourced); ok {
		return s.Source()
	}
	return locker.Source{}
}
