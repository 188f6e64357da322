// Package tracing records acquisitions and holds of any Locker as OpenTelemetry spans.
//
//	l = locker.Chain(l, tracing.New(tracing.Config{})) // of the global TracerProvider
//
// It needs OpenTelemetry's API alone; the program chooses the SDK. [docs/observability.md] lists
// all spans, events and attributes.
//
// An acquisition is one span, "acquire lock" (or "resume lock"), with an event for each attempt,
// each wait and its end. A hold is another span, "hold lock". It lasts from the return of Acquire
// until the release is answered or the lock is lost, and has the renewals as events. The ctx of the
// work in [locker.Do] carries it, so the spans of the work are below it.
//
// The span of the hold is a sibling of its acquisition's, below the caller's span, and links to it.
// If the caller has no span, it is a child of its acquisition's: both are in one trace.
//
// # Errors
//
// Transport errors, unknown outcomes, lost locks and failed releases set the status of a span to
// Error, with error.type. A refusal, a wait ended without the lock and a cancelled call leave it
// unset.
//
// # The link to the holder
//
// A refused acquisition links to the acquisition span of the holder, in any process and on any
// client. For the link, Request.Note carries the trace context, behind the user's own text: the
// word "traceparent=" and a W3C traceparent of version 00. It costs no round trip. It is sent only
// if the span is sampled, and if the note stays within locker.MaxNameLen. tracestate and baggage
// are not sent.
//
// A caller refused through a tracing Middleware sees the note without the trace context. State.Note
// shows it, and so does a Trace of the caller's, and a refused Upgrade if the hold is not recorded.
//
// There is no link to a holder that sends no trace context, such as one with another library.
// Nothing in a note is trusted beyond the IDs of a span: a program with write access to the lock's
// key can make a link point anywhere.
//
// # What it costs
//
// Without an SDK, or if the span is not sampled, nothing is added: no Trace, no note, no second
// span. The span of a hold ends when the lease does at the latest. If the lease never ends, the
// span lasts until the release.
//
// [docs/observability.md]: https://github.com/holdfast-go/holdfast/blob/main/docs/observability.md
package tracing
