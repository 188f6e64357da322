package tracing_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/locker/lockertest"
	"github.com/holdfast-go/holdfast/locker/locktrace"
	"github.com/holdfast-go/holdfast/middleware/internal/telemetry"
	"github.com/holdfast-go/holdfast/middleware/tracing"
)

const foreign = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

// linked returns the traceparents of a span's links.
func linked(s sdktrace.ReadOnlySpan) []string {
	out := []string{}
	for _, l := range s.Links() {
		sc := l.SpanContext
		out = append(out, fmt.Sprintf("00-%v-%v-%v %v remote=%v", sc.TraceID(), sc.SpanID(), sc.TraceFlags(), text(l.Attributes), sc.IsRemote()))
	}
	return out
}

// toward is the link to a holder's span.
func toward(sc trace.SpanContext) string {
	return fmt.Sprintf("00-%v-%v-%v link=holder remote=true", sc.TraceID(), sc.SpanID(), sc.TraceFlags())
}

// The stored note, the note for a refused caller, and the resulting link.
func TestNote(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("n", locker.MaxNameLen-len(" traceparent="+foreign)+1)
	type test struct {
		note string
		cfg  tracing.Config
		sent bool
	}
	check.Each(t, map[string]test{
		"none":                  {sent: true},
		"the user's":            {note: "nightly run", sent: true},
		"the longest that fits": {note: long[1:], sent: true},
		"too long":              {note: long},
		"the longest of all":    {note: strings.Repeat("n", locker.MaxNameLen)},
		"switched off":          {note: "nightly run", cfg: tracing.Config{NoLink: true}},
	}, func(t *testing.T, tt test) {
		r, server := record(), lockertest.New()
		locker.Must(r.middleware(tt.cfg)(server).Acquire(t.Context(), locker.Request{Name: "a", Note: tt.note}))
		holder := r.only(t, "acquire lock").SpanContext()
		stored, links := tt.note, []string{}
		if tt.sent {
			stored = strings.TrimPrefix(tt.note+" traceparent=00-"+holder.TraceID().String()+"-"+holder.SpanID().String()+"-01", " ")
			links = []string{toward(holder)}
		}
		check.Equal(t, "stored note", locker.Must(server.Inspect(t.Context(), "a")).Note, stored)
		check.AtMost(t, "its length", len(stored), locker.MaxNameLen)
		r.Reset()
		_, err := r.middleware(tracing.Config{NoLink: true})(server).Acquire(t.Context(), locker.Request{Name: "a", NoWait: true})
		held, ok := errors.AsType[*locker.ContentionError](err)
		if !ok || held.Note != tt.note || strings.Contains(err.Error(), "traceparent") || !errors.Is(err, locker.ErrNotAcquired) {
			t.Errorf("refused with %v, want note %q", err, tt.note)
		}
		equal(t, "links", linked(r.only(t, "acquire lock")), links)
	})
}

// A changed note keeps the trace context.
func TestNoteIsChanged(t *testing.T) {
	t.Parallel()
	for what, cfg := range map[string]tracing.Config{"sent": {}, "switched off": {NoLink: true}} {
		r, server := record(), lockertest.New()
		lock := locker.Must(r.middleware(cfg)(server).Acquire(t.Context(), locker.Request{Name: "a", Note: "before"}))
		before, _ := server.Inspect(t.Context(), "a")
		check.Error(t, what+": SetNote", lock.SetNote(t.Context(), "after"))
		want := strings.Replace(before.Note, "before", "after", 1)
		check.Equal(t, what+": stored note", locker.Must(server.Inspect(t.Context(), "a")).Note, want)
	}
}

// The caller gets a copy of the error: the strategy's own stays unchanged, and errors.Is and
// errors.As still find the rest of it.
func TestStrippedError(t *testing.T) {
	t.Parallel()
	raw := &locker.ContentionError{Name: "a", Owner: "w7", Note: "nightly traceparent=" + foreign, Hint: lease.Hint{RetryAfter: 1}}
	hint := errors.New("hint")
	for name, returned := range map[string]error{
		"bare":          raw,
		"in an OpError": &locker.OpError{Op: "acquire", Name: "a", Err: raw},
		"wrapped":       &locker.OpError{Op: "acquire", Name: "a", Err: fmt.Errorf("%w; %w", raw, hint)},
		"joined":        errors.Join(hint, &locker.OpError{Op: "acquire", Name: "a", Err: raw}),
		"a quorum's":    &locker.OpError{Op: "acquire", Name: "a", Err: errors.Join(raw, &locker.ContentionError{Name: "a", Owner: "w8", Note: "traceparent=" + foreign})},
	} {
		l := tracing.New(tracing.Config{})(locker.Func(func(context.Context, locker.Request) (*locker.Lock, error) { return nil, returned }))
		_, err := l.Acquire(t.Context(), locker.Request{Name: "a"})
		held, ok := errors.AsType[*locker.ContentionError](err)
		if !ok || held == raw || held.Note != "nightly" || held.Owner != "w7" || held.RetryAfter != 1 {
			t.Errorf("%s: found %+v", name, held)
		}
		var as *locker.ContentionError
		if !errors.As(err, &as) || as != held {
			t.Errorf("%s: errors.As finds %+v", name, as)
		}
		want := strings.ReplaceAll(returned.Error(), raw.Error(), held.Error())
		want = strings.ReplaceAll(want, `, note "traceparent=`+foreign[:52]+`"...`, "")
		if err.Error() != want || strings.Contains(want, "traceparent") {
			t.Errorf("%s: text %q, want %q", name, err, want)
		}
		if shown := telemetry.Text(err, false); strings.Contains(shown, "w7") || strings.Contains(shown, "w8") || strings.Contains(shown, "traceparent") {
			t.Errorf("%s: a log would have %q", name, shown)
		}
		if !errors.Is(err, locker.ErrNotAcquired) || errors.Is(err, hint) != errors.Is(returned, hint) {
			t.Errorf("%s: %v does not match what %v does", name, err, returned)
		}
		if opErr, is := errors.AsType[*locker.OpError](returned); is {
			got, ok := errors.AsType[*locker.OpError](err)
			if !ok || got.Op != opErr.Op || got.Name != opErr.Name {
				t.Errorf("%s: %v has lost its OpError", name, err)
			}
		}
	}
	check.Equal(t, "note of the strategy's error", raw.Note, "nightly traceparent="+foreign)
}

// An acquisition that meets several holders links to each once, and to at most 16.
func TestLinksAreBounded(t *testing.T) {
	t.Parallel()
	r := record()
	l := r.middleware(tracing.Config{})(locker.Func(func(ctx context.Context, req locker.Request) (*locker.Lock, error) {
		tr := locktrace.From(ctx)
		for i := range 100 {
			note := fmt.Sprintf("traceparent=00-4bf92f3577b34da6a3ce929d0e0e4736-%016x-01", i/2+1)
			tr.Attempt(ctx, locktrace.AttemptInfo{Err: &locker.ContentionError{Name: "a", Note: note}})
		}
		return nil, &locker.ContentionError{Name: "a", Note: req.Note} // its own, of an earlier send
	}))
	_, _ = l.Acquire(t.Context(), locker.Request{Name: "a"})
	links := linked(r.only(t, "acquire lock"))
	if len(links) != 16 || !strings.Contains(links[15], "-0000000000000010-") {
		t.Errorf("links are %v, want to the first sixteen holders", links)
	}
}

// A span does not link to itself, and a note gets no second trace context.
func TestNestedTracing(t *testing.T) {
	t.Parallel()
	r := record()
	mw := r.middleware(tracing.Config{})
	_, err := mw(mw(refused(locktrace.Source{}))).Acquire(t.Context(), locker.Request{Name: "a", Note: "n"})
	if held, ok := errors.AsType[*locker.ContentionError](err); !ok || held.Note != "n" {
		t.Errorf("refused with %v", err)
	}
	ended := r.Ended()
	if len(ended) != 2 {
		t.Fatalf("%d spans", len(ended))
	}
	inner, outer := ended[0], ended[1]
	for _, s := range ended {
		want(t, s, "attempts=1 contended=true holder.note=n lock.mode=exclusive lock.name=a outcome=held waited=0", "Unset")
	}
	equal(t, "links of the inner span", linked(inner), []string{toward(outer.SpanContext())})
	equal(t, "links of the outer span", linked(outer), []string{})
}

// A resume without a note keeps the stored one, and so the link to the span of the hold's begin.
func TestResumeKeepsNote(t *testing.T) {
	t.Parallel()
	for note, sends := range map[string]bool{"": false, "mine": true} {
		r := record()
		var seen string
		l := r.middleware(tracing.Config{})(locker.Func(func(_ context.Context, req locker.Request) (*locker.Lock, error) {
			seen = req.Note
			return nil, locker.ErrNotHeld
		}))
		_, _ = l.Acquire(t.Context(), locker.Request{Name: "a", Note: note, Resume: locker.NewLock(context.Background(), lease.HoldInfo{Name: "a", Token: "t"}, nil).Handle()})
		if strings.Contains(seen, "traceparent=") != sends || !strings.HasPrefix(seen, note) {
			t.Errorf("a resume with note %q sends %q", note, seen)
		}
	}
}

// recordOnly is a sampler: spans are recorded and not exported.
type recordOnly struct{}

func (recordOnly) ShouldSample(sdktrace.SamplingParameters) sdktrace.SamplingResult {
	return sdktrace.SamplingResult{Decision: sdktrace.RecordOnly}
}

func (recordOnly) Description() string { return "records only" }

// Nobody links to an unexported span.
func TestRecordedOnly(t *testing.T) {
	t.Parallel()
	server := lockertest.New()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSampler(recordOnly{}))
	l := tracing.New(tracing.Config{TracerProvider: provider})(server)
	locker.Must(l.Acquire(t.Context(), locker.Request{Name: "a", Note: "n"}))
	check.Equal(t, "stored note", locker.Must(server.Inspect(t.Context(), "a")).Note, "n")
}
