package tracing_test

import (
	"context"
	"testing"

	"go.opentelemetry.io/otel"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lockertest"
	"github.com/holdfast-go/holdfast/middleware/internal/observetest"
	"github.com/holdfast-go/holdfast/middleware/tracing"
)

// late is a TracerProvider with an SDK attached later, without a change of the global one, as by
// automatic instrumentation.
type late struct {
	noop.TracerProvider
	sdk   trace.TracerProvider
	asked int // Start calls
}

type lateTracer struct {
	noop.Tracer
	of *late
}

func (l *late) Tracer(string, ...trace.TracerOption) trace.Tracer { return lateTracer{of: l} }

func (t lateTracer) Start(ctx context.Context, name string, opts ...trace.SpanStartOption) (context.Context, trace.Span) {
	t.of.asked++
	if t.of.sdk != nil {
		return t.of.sdk.Tracer("sdk").Start(ctx, name, opts...) //nolint:spancheck // its user ends it
	}
	return t.Tracer.Start(ctx, name, opts...)
}

func cycle(tb testing.TB, ctx context.Context, l locker.Locker) {
	tb.Helper()
	observetest.Cycle(tb, ctx, l, locker.Request{Name: "a"})
}

// Without an SDK few acquisitions look for one, with or without a caller's span. The first to find
// one is recorded, as are all later ones.
func TestNoSDK(t *testing.T) {
	t.Parallel()
	remote := trace.ContextWithRemoteSpanContext(t.Context(), trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, TraceFlags: trace.FlagsSampled,
	}))
	contexts := map[string]context.Context{"no span": t.Context(), "a remote span": remote}
	check.Each(t, contexts, func(t *testing.T, ctx context.Context) {
		p := &late{}
		inner := locker.Func(func(got context.Context, req locker.Request) (*locker.Lock, error) {
			if p.sdk == nil && (got != ctx || req.Note != "") {
				t.Errorf("the Locker inside got another ctx or note: %q", req.Note)
			}
			return lockertest.New().Acquire(got, req)
		})
		l := tracing.New(tracing.Config{TracerProvider: p})(inner)
		for range 160 {
			cycle(t, ctx, l)
		}
		check.Within(t, "acquisitions of 160 that asked for an SDK", p.asked, 1, 11)
		r := record()
		p.sdk = r.provider
		for range 32 {
			cycle(t, ctx, l)
		}
		if n := len(r.Ended()); n < 2*17 || n%2 != 0 {
			t.Errorf("%d spans of 32 cycles", n)
		}
	})
}

// uncomparable is a TracerProvider; == panics on it.
type uncomparable struct {
	*late
	_ []int
}

// The global TracerProvider is read at each acquisition: a new one is used at once.
func TestGlobalProvider(t *testing.T) { //nolint:paralleltest // it sets what is global
	before := otel.GetTracerProvider()
	defer otel.SetTracerProvider(before)
	l := tracing.New(tracing.Config{})(lockertest.New())
	for range 3 {
		cycle(t, t.Context(), l)
	}
	otel.SetTracerProvider(uncomparable{late: &late{}})
	for range 3 {
		cycle(t, t.Context(), l)
	}
	for range 2 {
		r := tracetest.NewSpanRecorder()
		otel.SetTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(r)))
		cycle(t, t.Context(), l)
		check.Equal(t, "spans that ended", len(r.Ended()), 2)
	}
	otel.SetTracerProvider(noop.NewTracerProvider())
	cycle(t, t.Context(), l)
}

// Without an SDK a cycle allocates a fraction of an object on average. The limit is two.
func TestNoSDKAllocations(t *testing.T) {
	l := lockertest.New()
	ctx := context.Background()
	plain := testing.AllocsPerRun(200, func() { cycle(t, ctx, l) })
	for name, cfg := range map[string]tracing.Config{
		"noop provider": {TracerProvider: noop.NewTracerProvider()},
		"placeholder":   {TracerProvider: otel.GetTracerProvider()},
		"global":        {},
	} {
		traced := tracing.New(cfg)(l)
		cycle(t, ctx, traced)
		check.AtMost(t, name+": allocations more", testing.AllocsPerRun(200, func() { cycle(t, ctx, traced) })-plain, 0)
	}
}
