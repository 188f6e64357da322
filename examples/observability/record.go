package main

import (
	"context"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
)

// recorder keeps the spans of all workers, in place of a tracing backend.
type recorder struct {
	mu      sync.Mutex
	ended   []span
	stopped bool
	lost    chan struct{} // closed when a lost hold has ended
}

func newRecorder() *recorder { return &recorder{lost: make(chan struct{})} }

// span is an ended span.
type span struct{ sdktrace.ReadOnlySpan }

// OnStart implements sdktrace.SpanProcessor.
func (*recorder) OnStart(context.Context, sdktrace.ReadWriteSpan) {}

// OnEnd implements sdktrace.SpanProcessor.
func (r *recorder) OnEnd(s sdktrace.ReadOnlySpan) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.stopped {
		r.ended = append(r.ended, span{s})
	}
	if (span{s}).value("holdfast.outcome") == "lost" {
		select {
		case <-r.lost:
		default:
			close(r.lost)
		}
	}
}

// awaitLoss waits for the span of a lost hold. A loss is reported in the background: the span may
// end after the work.
func (r *recorder) awaitLoss(ctx context.Context) {
	select {
	case <-r.lost:
	case <-ctx.Done():
	}
}

// Shutdown implements sdktrace.SpanProcessor.
func (*recorder) Shutdown(context.Context) error { return nil }

// ForceFlush implements sdktrace.SpanProcessor.
func (*recorder) ForceFlush(context.Context) error { return nil }

// stop returns the recorded spans, and records no more.
func (r *recorder) stop() *recorded {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stopped = true
	done := &recorded{spans: r.ended, byID: map[trace.SpanID]span{}, holds: map[trace.SpanID]span{}}
	slices.SortStableFunc(done.spans, func(a, b span) int { return a.StartTime().Compare(b.StartTime()) })
	for _, s := range done.spans {
		done.byID[s.SpanContext().SpanID()] = s
		if s.Name() == "hold lock" {
			for _, l := range s.linksTo("acquisition") {
				done.holds[l] = s
			}
		}
	}
	return done
}

// recorded are spans in the order of their beginning.
type recorded struct {
	spans []span
	byID  map[trace.SpanID]span
	holds map[trace.SpanID]span // by the acquisition that began them
}

// start is when the first one began.
func (r *recorded) start() time.Time { return r.spans[0].StartTime() }

// children are the spans right below a parent, or the roots if it is none.
func (r *recorded) children(parent trace.SpanID) []span {
	var below []span
	for _, s := range r.spans {
		if s.Parent().SpanID() == parent {
			below = append(below, s)
		}
	}
	return below
}

// wait is the part of an acquisition spent waiting for another's hold.
type wait struct {
	holder, hold span // the linked acquisition of the holder, and its hold
	begin, end   time.Time
}

// waits returns an acquisition's waits for others, by its links.
func (r *recorded) waits(acquisition span) []wait {
	var all []wait
	for _, id := range acquisition.linksTo("holder") {
		holder, hold := r.byID[id], r.holds[id]
		if holder.ReadOnlySpan == nil || hold.ReadOnlySpan == nil {
			continue // of another program, on a real server
		}
		w := wait{
			holder: holder, hold: hold,
			begin: latest(acquisition.StartTime(), hold.StartTime()),
			end:   earliest(acquisition.EndTime(), hold.EndTime()),
		}
		if w.end.Before(w.begin) {
			w.end = w.begin
		}
		all = append(all, w)
	}
	return all
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func earliest(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// service is the name of a span's process.
func (s span) service() string {
	name, _ := s.Resource().Set().Value(semconv.ServiceNameKey)
	return name.AsString()
}

// value is an attribute's, as text; "" if there is none.
func (s span) value(key attribute.Key) string {
	for _, a := range s.Attributes() {
		if a.Key == key {
			return a.Value.String()
		}
	}
	return ""
}

// linksTo are the spans linked by s, of one kind: "holder" or "acquisition".
func (s span) linksTo(kind string) []trace.SpanID {
	var to []trace.SpanID
	for _, l := range s.Links() {
		if slices.Contains(l.Attributes, attribute.String("holdfast.link", kind)) {
			to = append(to, l.SpanContext.SpanID())
		}
	}
	return to
}

// acquires reports whether s is an acquisition of the lock of that name.
func (s span) acquires(name string) bool {
	return s.Name() == "acquire lock" && s.value("holdfast.lock.name") == name
}

func (s span) took() time.Duration { return s.EndTime().Sub(s.StartTime()) }
