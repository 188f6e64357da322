// Package tracing records acquisitions and holds of any Locker as OpenTelemetry spans. It needs the
// API alone; the program chooses the SDK. docs/observability.md lists all that is recorded.
//
// An acquisition is one span, "acquire lock" (or "resume lock"), with an event for each attempt,
// each wait and what ended it. A hold is another, "hold lock", from the return of Acquire until the
// release is answered or the lock is lost, with renewals as events. The ctx that [locker.Do] hands
// to the work carries it, so that what the work does is below it.
//
// The span of the hold is a sibling of its acquisition's, below the caller's span, and links to it;
// where the caller has no span it is a child of its acquisition's, so that both are in one trace.
//
// # Errors
//
// To be refused, to wait in vain and to be called off leave the status of a span unset. Transport
// errors, unknown outcomes, lost locks and releases that failed set it to Error, with error.type.
//
// # The link to the holder
//
// An acquisition that was refused links to the acquisition span of who held the lock, in whichever
// process and on whichever client. For that the trace context of the acquisition travels in
// Request.Note, behind what the user has put there, as "traceparent=" and a W3C traceparent of
// version 00; it costs no round trip. Only a sampled span is sent, and only where the note stays
// within locker.MaxNameLen. Those who are refused through a tracing Middleware see the note without
// it; State.Note, a Trace of the caller's and, where the hold is not recorded, a refused Upgrade
// show it. tracestate and baggage do not travel.
//
// A holder that sends none, as one that uses another library, gives no link. What comes in a note
// is never trusted beyond the IDs of a span: whoever can write the lock's key can make a link point
// anywhere.
//
// # What it costs
//
// Where no SDK is installed, or the span is not sampled, nothing is installed on the way: no Trace,
// no note, no second span. A process that never releases and never loses a lock never ends its
// span; with a lease, it ends at the latest when that does.
package tracing
