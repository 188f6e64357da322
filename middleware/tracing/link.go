package tracing

import (
	"encoding/hex"
	"errors"
	"slices"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/middleware/internal/observe"
)

// maxLinks is how many holders the span of one acquisition links to at most: the first ones that it met.
const maxLinks = 16

// traceparent is a span's context in the form of https://www.w3.org/TR/trace-context/.
func traceparent(sc trace.SpanContext) string {
	return "00-" + sc.TraceID().String() + "-" + sc.SpanID().String() + "-" + (sc.TraceFlags() & (trace.FlagsSampled | trace.FlagsRandom)).String()
}

// parse reads a traceparent that observe.SplitNote found well-formed.
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

// send puts the span's context into the note of req. A resume without a note keeps the one that is stored.
func (a *acquisition) send(req locker.Request) locker.Request {
	sc := a.span.SpanContext()
	if !a.cfg.NoLink && sc.IsSampled() && (req.Resume.IsZero() || req.Note != "") {
		req.Note, _ = observe.JoinNote(req.Note, traceparent(sc), locker.MaxNameLen)
	}
	return req
}

// link links to the holder that err names.
func (a *acquisition) link(err error) {
	held, ok := errors.AsType[*locker.ContentionError](err)
	if !ok || len(a.holders) == maxLinks {
		return
	}
	_, from := observe.SplitNote(held.Note)
	if from == "" || slices.Contains(a.holders, from) {
		return
	}
	sc, ok := parse(from)
	if !ok || sc.SpanID() == a.span.SpanContext().SpanID() && sc.TraceID() == a.span.SpanContext().TraceID() {
		return
	}
	a.holders = append(a.holders, from)
	a.span.AddLink(trace.Link{SpanContext: sc, Attributes: []attribute.KeyValue{keyLink.String("holder")}})
}

// strip returns err as the caller shall see it: without the trace context in the note of a refusal.
func strip(err error) error {
	if err == nil {
		return nil
	}
	raw, ok := errors.AsType[*locker.ContentionError](err)
	if !ok {
		return err
	}
	note, from := observe.SplitNote(raw.Note)
	if from == "" {
		return err
	}
	held := *raw
	held.Note = note
	if op, ok := err.(*locker.OpError); ok { //nolint:errorlint // the outermost, or none
		return &locker.OpError{Op: op.Op, Name: op.Name, Err: replaced(op.Err, raw, &held)}
	}
	return replaced(err, raw, &held)
}

func replaced(err error, raw, held *locker.ContentionError) error {
	if err == error(raw) { //nolint:errorlint // it and no wrapper
		return held
	}
	return &stripped{err, raw, held}
}

// stripped is an error with another ContentionError in it.
type stripped struct {
	err       error
	raw, held *locker.ContentionError
}

// Error implements error.
func (s *stripped) Error() string {
	return strings.ReplaceAll(s.err.Error(), s.raw.Error(), s.held.Error())
}

// Unwrap returns what is around and beside the ContentionError.
func (s *stripped) Unwrap() error { return s.err }

// As comes before Unwrap.
func (s *stripped) As(target any) bool {
	held, ok := target.(**locker.ContentionError)
	if ok {
		*held = s.held
	}
	return ok
}
