package tracing

import (
	"encoding/hex"
	"errors"
	"slices"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/middleware/internal/telemetry"
)

// maxLinks bounds the links of an acquisition's span, to the first holders it met.
const maxLinks = 16

// traceparent is a span's context in the form of https://www.w3.org/TR/trace-context/.
func traceparent(sc trace.SpanContext) string {
	return "00-" + sc.TraceID().String() + "-" + sc.SpanID().String() + "-" +
		(sc.TraceFlags() & (trace.FlagsSampled | trace.FlagsRandom)).String()
}

// parse reads a well-formed traceparent of telemetry.SplitNote.
func parse(traceparent string) (trace.SpanContext, bool) {
	parts := strings.Split(traceparent, "-")
	if len(parts) != 4 {
		return trace.SpanContext{}, false
	}
	traceID, err1 := trace.TraceIDFromHex(parts[1])
	spanID, err2 := trace.SpanIDFromHex(parts[2])
	flags, err3 := hex.DecodeString(parts[3])
	if errors.Join(err1, err2, err3) != nil || len(flags) != 1 {
		return trace.SpanContext{}, false
	}
	return trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: traceID, SpanID: spanID, TraceFlags: trace.TraceFlags(flags[0]), Remote: true,
	}), true
}

// send puts the span's context into the note of req. A resume without a note keeps the stored one.
func (a *acquisition) send(req locker.Request) locker.Request {
	if from := a.sends(); from != "" && (req.Resume.IsZero() || req.Note != "") {
		req.Note, _ = telemetry.JoinNote(req.Note, from, locker.MaxNameLen)
	}
	return req
}

// sends returns the traceparent for notes; "": none.
func (a *acquisition) sends() string {
	if sc := a.span.SpanContext(); !a.cfg.NoLink && sc.IsSampled() {
		return traceparent(sc)
	}
	return ""
}

// link links to the holders named by err.
func (a *acquisition) link(err error) {
	for _, held := range telemetry.Refusals(err) {
		_, from := telemetry.SplitNote(held.Note)
		if from == "" || slices.Contains(a.holders, from) || len(a.holders) == maxLinks {
			continue
		}
		sc, ok := parse(from)
		if own := a.span.SpanContext(); !ok || sc.SpanID() == own.SpanID() && sc.TraceID() == own.TraceID() {
			continue
		}
		a.holders = append(a.holders, from)
		a.span.AddLink(trace.Link{SpanContext: sc, Attributes: []attribute.KeyValue{keyLink.String("holder")}})
	}
}

// strip returns err for the caller: without the trace context in the notes of refusals.
func strip(err error) error {
	if err == nil || !slices.ContainsFunc(telemetry.Refusals(err), sent) {
		return err
	}
	if op, ok := err.(*locker.OpError); ok { //nolint:errorlint // the outermost, or none
		return &locker.OpError{Op: op.Op, Name: op.Name, Err: stripped(op.Err)}
	}
	return stripped(err)
}

// sent reports whether the holder sent its trace context.
func sent(held *locker.ContentionError) bool {
	_, from := telemetry.SplitNote(held.Note)
	return from != ""
}

func stripped(err error) error {
	held := telemetry.Refusals(err)
	for i, raw := range held {
		held[i] = telemetry.Shown(raw, true)
	}
	if _, bare := err.(*locker.ContentionError); bare { //nolint:errorlint // it and no wrapper
		return held[0]
	}
	return &strippedError{err, held, telemetry.Holder(err, true)}
}

// strippedError is an error with other refusals than it wraps.
type strippedError struct {
	err   error
	held  []*locker.ContentionError
	first *locker.ContentionError // the one that errors.As finds; nil: an outage's text alone has refusals
}

// Refusals returns the shown ones.
func (s *strippedError) Refusals() []*locker.ContentionError { return slices.Clone(s.held) }

// Error implements error.
func (s *strippedError) Error() string { return telemetry.Text(s.err, true) }

// Unwrap returns the tree with the original ContentionErrors.
func (s *strippedError) Unwrap() error { return s.err }

// As comes before Unwrap.
func (s *strippedError) As(target any) bool {
	held, ok := target.(**locker.ContentionError)
	if ok = ok && s.first != nil; ok {
		*held = s.first
	}
	return ok
}
