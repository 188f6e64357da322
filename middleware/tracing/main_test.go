package tracing_test

import (
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lockertest"
	"github.com/holdfast-go/holdfast/middleware/internal/observetest"
	"github.com/holdfast-go/holdfast/middleware/tracing"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	elapse, waitsFor     = observetest.Elapse, observetest.WaitsFor
	text, without, equal = observetest.Text, observetest.Without, observetest.Equal
)

// recorded is an SDK with the ended spans.
type recorded struct {
	*tracetest.SpanRecorder
	provider trace.TracerProvider
}

func record() *recorded {
	r := tracetest.NewSpanRecorder()
	return &recorded{r, sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(r), sdktrace.WithSampler(sdktrace.AlwaysSample()))}
}

// middleware is a tracing Middleware that records to r.
func (r *recorded) middleware(cfg tracing.Config) locker.Middleware {
	cfg.TracerProvider = r.provider
	return tracing.New(cfg)
}

// only returns the one ended span with that name.
func (r *recorded) only(t *testing.T, name string) sdktrace.ReadOnlySpan {
	t.Helper()
	var found []sdktrace.ReadOnlySpan
	for _, s := range r.Ended() {
		if s.Name() == name {
			found = append(found, s)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d spans %q ended, want one", len(found), name)
	}
	return found[0]
}

// events formats the events of a span, without the constant attributes.
func events(s sdktrace.ReadOnlySpan) []string {
	out := []string{}
	for _, e := range s.Events() {
		out = append(out, without(e.Time.Sub(s.StartTime()).String()+" "+e.Name+" "+text(e.Attributes)))
	}
	return out
}

// want compares the attributes and the status of a span.
func want(t *testing.T, s sdktrace.ReadOnlySpan, attrs, status string) {
	t.Helper()
	check.Equal(t, "attributes of "+s.Name(), without(text(s.Attributes())), attrs)
	got := s.Status().Code.String()
	if s.Status().Description != "" {
		got += ": " + s.Status().Description
	}
	check.Equal(t, "status of "+s.Name(), got, status)
}

// bubble runs f in fake time.
func bubble(t *testing.T, f func(t *testing.T, server *lockertest.Locker, r *recorded)) {
	t.Helper()
	check.InFakeTime(t, func(t *testing.T) { f(t, lockertest.New(), record()) })
}
