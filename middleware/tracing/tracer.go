package tracing

import (
	"context"
	"reflect"
	"sync/atomic"

	"go.opentelemetry.io/otel"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/locktrace"
	"github.com/holdfast-go/holdfast/middleware/internal/telemetry"
)

// scope names this package to the SDK.
const scope = "github.com/holdfast-go/holdfast/middleware/tracing"

// lookEvery is the number of acquisitions between two looks for an SDK, if there was none. A new
// global TracerProvider is seen at once; the looks find an SDK attached to a running process, as by
// automatic instrumentation.
const lookEvery = 16

// tracer starts spans.
type tracer struct {
	cfg      Config
	observer *telemetry.Observer[acquisition]
	holds    *locktrace.Trace
	current  atomic.Pointer[provided]
}

// provided is a Tracer and its TracerProvider.
type provided struct {
	trace.Tracer
	from   trace.TracerProvider // nil if it cannot be compared
	absent atomic.Bool          // there is no SDK behind it
	idle   atomic.Uint64        // acquisitions since the SDK was found absent
}

func newTracer(cfg Config) *tracer {
	t := &tracer{cfg: cfg}
	t.observer = telemetry.NewObserver(telemetry.Hooks[acquisition]{Attempt: attempted, Waiting: waiting, Woken: woken})
	of := func(ctx context.Context) *hold { return &t.observer.Of(ctx).Data.hold }
	t.holds = &locktrace.Trace{
		Renewed: func(ctx context.Context, info locktrace.RenewedInfo) { of(ctx).renewed(info) },
		Released: func(ctx context.Context, info locktrace.ReleasedInfo) {
			of(ctx).end(telemetry.OfRelease(info.Err), info.Err)
		},
		Lost: func(ctx context.Context, info locktrace.LostInfo) { of(ctx).end(telemetry.Lost, info.Err) },
	}
	return t
}

// provided returns the Tracer of the TracerProvider as it is now.
func (t *tracer) provided() *provided {
	from := t.cfg.TracerProvider
	p := t.current.Load()
	if p != nil && from != nil {
		return p
	}
	if from == nil {
		from = otel.GetTracerProvider()
	}
	if p != nil && p.from != nil && p.from == from {
		return p
	}
	p = &provided{Tracer: from.Tracer(scope, trace.WithSchemaURL(semconv.SchemaURL))}
	if reflect.ValueOf(from).Comparable() {
		p.from = from
	}
	t.current.Store(p)
	return p
}

// silent reports whether there is no SDK, mostly without asking.
func (p *provided) silent() bool { return p.absent.Load() && p.idle.Add(1)%lookEvery != 0 }

// start starts the span of an acquisition. Without an SDK it returns ctx and nil.
func (t *tracer) start(ctx context.Context, req locker.Request) (context.Context, trace.Span) {
	p := t.provided()
	if p.silent() {
		return ctx, nil
	}
	name := "acquire lock"
	if !req.Resume.IsZero() {
		name = "resume lock"
	}
	parent := trace.SpanContextFromContext(ctx)
	next, span := p.Start(ctx, name, internal, with(t.ofRequest(req)))
	absent := span.SpanContext().SpanID() == parent.SpanID() // every SDK gives a span an ID, sampled or not
	p.absent.Store(absent)
	if absent {
		return ctx, nil
	}
	return next, span
}
