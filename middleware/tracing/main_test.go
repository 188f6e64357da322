package tracing_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lockertest"
	"github.com/holdfast-go/holdfast/middleware/tracing"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// elapse lets fake time pass.
func elapse(d time.Duration) { time.Sleep(d) } //nolint:forbidigo // in bubbles only

// recorded is an SDK that keeps the ended spans.
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

// only returns the one span of that name that has ended.
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

// text shows attributes, in order of their keys.
func text(attrs []attribute.KeyValue) string {
	all := map[string]string{}
	for _, a := range attrs {
		all[strings.TrimPrefix(string(a.Key), "holdfast.")] = a.Value.String()
	}
	var b strings.Builder
	for _, k := range slices.Sorted(maps.Keys(all)) {
		fmt.Fprintf(&b, " %s=%s", k, all[k])
	}
	return strings.TrimPrefix(b.String(), " ")
}

// events formats the events of a span, without the attributes that are always the same.
func events(s sdktrace.ReadOnlySpan) []string {
	out := []string{}
	for _, e := range s.Events() {
		line := e.Time.Sub(s.StartTime()).String() + " " + e.Name + " " + text(e.Attributes)
		out = append(out, without(line))
	}
	return out
}

// without removes the attributes that everything from lockertest has.
func without(line string) string {
	return strings.TrimSpace(strings.NewReplacer(" provider=memory", "", " strategy=lockertest", "").Replace(" " + line))
}

// want compares the attributes and the status of a span.
func want(t *testing.T, s sdktrace.ReadOnlySpan, attrs, status string) {
	t.Helper()
	if got := without(text(s.Attributes())); got != attrs {
		t.Errorf("%s has\n%s, want\n%s", s.Name(), got, attrs)
	}
	got := s.Status().Code.String()
	if s.Status().Description != "" {
		got += ": " + s.Status().Description
	}
	if got != status {
		t.Errorf("%s has status %q, want %q", s.Name(), got, status)
	}
}

func equal(t *testing.T, what string, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s are\n%s\nwant\n%s", what, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// bubble runs f in fake time.
func bubble(t *testing.T, f func(t *testing.T, server *lockertest.Locker, r *recorded)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { f(t, lockertest.New(), record()) })
}
