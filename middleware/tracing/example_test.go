package tracing_test

import (
	"context"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v4"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lockertest"
	"github.com/holdfast-go/holdfast/middleware/retry"
	"github.com/holdfast-go/holdfast/middleware/tracing"
)

// show prints the recorded spans, in the order of their ends.
func show(recorder *tracetest.SpanRecorder) {
	for _, span := range recorder.Ended() {
		fmt.Print(span.Name(), ":")
		for _, a := range span.Attributes() {
			if a.Key == "holdfast.outcome" || a.Key == "holdfast.attempts" {
				fmt.Print(" ", a.Value.String())
			}
		}
		fmt.Println()
		for _, event := range span.Events() {
			fmt.Println("   ", event.Name)
		}
	}
}

// contended acquires a held lock through a chain, and gives up after the third attempt.
func contended(chain ...locker.Middleware) {
	server := lockertest.New()
	server.Hold(locker.Request{Name: "report"})
	_, _ = locker.Chain(server, chain...).Acquire(context.Background(), locker.Request{Name: "report"})
}

// parts returns the middlewares of the examples, and the recorder of the first.
func parts() (tracer, waiter locker.Middleware, recorder *tracetest.SpanRecorder) {
	recorder = tracetest.NewSpanRecorder()
	tracer = tracing.New(tracing.Config{TracerProvider: sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder))})
	waiter = locker.Must(retry.New(retry.Config{MaxAttempts: 3, Policy: func() backoff.BackOff {
		return backoff.NewConstantBackOff(time.Millisecond)
	}}))
	return tracer, waiter, recorder
}

// Tracing outside retry records one span per acquisition, waiting included. Most programs want
// this.
func Example_tracingOutsideRetry() {
	tracer, waiter, recorder := parts()
	contended(tracer, waiter)
	show(recorder)
	// Output:
	// acquire lock: held 3
	//     attempt
	//     wait
	//     woken
	//     attempt
	//     wait
	//     woken
	//     attempt
}

// Tracing inside retry records a span for each attempt. The waiting is between the spans.
func Example_tracingInsideRetry() {
	tracer, waiter, recorder := parts()
	contended(waiter, tracer)
	show(recorder)
	// Output:
	// acquire lock: held 1
	//     attempt
	// acquire lock: held 1
	//     attempt
	// acquire lock: held 1
	//     attempt
}

// The span of the hold lasts until the release. The spans of the work are its children.
func ExampleNew() {
	recorder := tracetest.NewSpanRecorder()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder))
	l := locker.Chain(lockertest.New(), tracing.New(tracing.Config{TracerProvider: provider}))

	ctx, request := provider.Tracer("app").Start(context.Background(), "handle request")
	err := locker.Do(ctx, l, locker.Request{Name: "invoice:42"}, func(ctx context.Context, lock *locker.Lock) error {
		_, query := trace.SpanFromContext(ctx).TracerProvider().Tracer("app").Start(ctx, "query database")
		query.End()
		return lock.Renew(ctx, 0)
	})
	request.End()

	names := map[trace.SpanID]string{}
	for _, span := range recorder.Ended() {
		names[span.SpanContext().SpanID()] = span.Name()
	}
	for _, span := range recorder.Ended() {
		fmt.Printf("%s, below %q, %d events\n", span.Name(), names[span.Parent().SpanID()], len(span.Events()))
	}
	fmt.Println(err)
	// Output:
	// acquire lock, below "handle request", 1 events
	// query database, below "hold lock", 0 events
	// hold lock, below "handle request", 1 events
	// handle request, below "", 0 events
	// <nil>
}
