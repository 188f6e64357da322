package tracing_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/locker/lockertest"
	"github.com/holdfast-go/holdfast/locker/locktrace"
	"github.com/holdfast-go/holdfast/middleware/tracing"
)

// Each outcome is recorded on the span.
func TestOutcomes(t *testing.T) { //nolint:tparallel // bubble does
	t.Parallel()
	hold := func(l *lockertest.Locker) {
		l.Hold(locker.Request{Name: "job", Owner: "w7", Note: "nightly", TTL: time.Hour})
	}
	fail := func(err error) func(*lockertest.Locker) { return func(l *lockertest.Locker) { l.FailAcquire(err) } }
	const free, unset = "attempts=1 contended=false lock.mode=exclusive lock.name=job ", "Unset"
	const refused = "contended=true holder.note=nightly lock.mode=exclusive lock.name=job "
	tests := []struct {
		name          string
		before        func(*lockertest.Locker)
		cfg           tracing.Config
		req           locker.Request
		cancel        time.Duration // when the caller gives up; 0: never
		attrs, status string
	}{
		{name: "acquired", req: locker.Request{TTL: time.Minute}, attrs: free + "lock.ttl=60 outcome=acquired waited=0", status: unset},
		{
			name: "fenced, shared, default TTL", req: locker.Request{Fenced: true, Mode: locker.Shared}, status: unset,
			attrs: "attempts=1 contended=false lock.fence=1 lock.mode=shared lock.name=job lock.ttl=30 outcome=acquired waited=0",
		},
		{
			name: "refused", before: hold, req: locker.Request{NoWait: true, Owner: "me"}, status: unset,
			attrs: "attempts=1 " + refused + "outcome=held waited=0",
		},
		{
			name: "owners are asked for", before: hold, cfg: tracing.Config{ShowOwner: true},
			req: locker.Request{NoWait: true, Owner: "me"}, status: unset,
			attrs: "attempts=1 contended=true holder.note=nightly holder.owner=w7 lock.mode=exclusive lock.name=job lock.owner=me outcome=held waited=0",
		},
		{
			name: "MaxWait", before: hold, req: locker.Request{MaxWait: 10 * time.Second},
			attrs: "attempts=4 " + refused + "outcome=timeout waited=10", status: unset,
		},
		{name: "cancelled", before: hold, cancel: 4 * time.Second, attrs: "attempts=2 " + refused + "outcome=cancelled waited=4", status: unset},
		{
			name: "server error", before: fail(&driver.ServerError{Text: "WRONGTYPE not a string"}),
			attrs:  "attempts=1 contended=false db.response.status_code=WRONGTYPE error.type=WRONGTYPE lock.mode=exclusive lock.name=job outcome=error waited=0",
			status: `Error: holdfast: acquire "job": server error: WRONGTYPE not a string`,
		},
		{
			name: "an outage that passes", before: fail(io.EOF), status: unset,
			attrs: "attempts=2 contended=false lock.mode=exclusive lock.name=job lock.ttl=30 outcome=acquired waited=3",
		},
		{
			name: "resume of what is gone", req: locker.Request{Resume: locker.NewLock(context.Background(), lease.HoldInfo{Name: "job", Token: "t"}, nil).Handle()},
			attrs:  "attempts=1 contended=false error.type=not_held lock.mode=exclusive lock.name=job outcome=error waited=0",
			status: `Error: holdfast: resume "job": lock is not held`,
		},
		{
			name: "the user's attributes", status: unset, attrs: free + "lock.ttl=30 outcome=acquired server.address=redis.example strategy=mine waited=0",
			cfg: tracing.Config{Attributes: []attribute.KeyValue{semconv.ServerAddress("redis.example"), attribute.String("holdfast.strategy", "mine")}},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, server *lockertest.Locker, r *recorded) {
				if tt.before != nil {
					tt.before(server)
				}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if tt.cancel > 0 {
					time.AfterFunc(tt.cancel, cancel)
				}
				tt.req.Name = "job"
				l := locker.Chain(server, r.middleware(tt.cfg), waitsFor(3*time.Second))
				lock, err := l.Acquire(ctx, tt.req)
				span := "acquire lock"
				if !tt.req.Resume.IsZero() {
					span = "resume lock"
				}
				want(t, r.only(t, span), tt.attrs, tt.status)
				if err == nil {
					check.OK(t, lock.Release(t.Context()))
				}
			})
		})
	}
}

// Every attempt, every wait and the end of every wait is an event.
func TestEvents(t *testing.T) {
	bubble(t, func(t *testing.T, server *lockertest.Locker, r *recorded) {
		l := locker.Chain(server, r.middleware(tracing.Config{ShowOwner: true}), waitsFor(2*time.Second))
		held := server.Hold(locker.Request{Name: "job", Owner: "w7", TTL: 3 * time.Second})
		time.AfterFunc(time.Second, func() { server.FailAcquire(io.EOF) })
		lock := locker.Must(l.Acquire(t.Context(), locker.Request{Name: "job", Owner: "me"}))
		first := r.only(t, "acquire lock")
		equal(t, "events", events(first), []string{
			"0s attempt attempt.elapsed=0 attempt.sends=1 holder.owner=w7 outcome=held",
			"0s wait wait.for=2 wait.queued=0 wait.subscribed=false",
			"2s woken waited=2 woken.by=backoff",
			"2s attempt attempt.elapsed=0 attempt.sends=1 error.type=eof outcome=error",
			"2s wait error.type=eof wait.for=2 wait.queued=0 wait.subscribed=false",
			"4s woken waited=2 woken.by=backoff",
			"4s attempt attempt.elapsed=0 attempt.sends=1 outcome=acquired",
		})
		if first.SpanKind() != trace.SpanKindInternal || first.EndTime().Sub(first.StartTime()) != 4*time.Second {
			t.Errorf("a span of kind %v that took %v", first.SpanKind(), first.EndTime().Sub(first.StartTime()))
		}
		check.Equal(t, "the first lock has expired", held.Err() != nil, true)

		r.Reset()
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, _ = l.Acquire(t.Context(), locker.Request{Name: "job", MaxWait: 500 * time.Millisecond})
		}()
		synctest.Wait()
		go func() {
			if second, err := l.Acquire(t.Context(), locker.Request{Name: "job"}); err == nil {
				_ = second.Release(t.Context())
			}
		}()
		<-done
		elapse(500 * time.Millisecond)
		equal(t, "events of one that gave up", events(r.only(t, "acquire lock")), []string{
			"0s attempt attempt.elapsed=0 attempt.sends=1 holder.owner=me outcome=held",
			"0s wait wait.for=2 wait.queued=0 wait.subscribed=false",
			"500ms gave up outcome=timeout",
		})
		r.Reset()
		check.OK(t, lock.Release(t.Context()))
		synctest.Wait()
		var queued []string
		for _, s := range r.Ended() {
			if s.Name() == "acquire lock" {
				queued = events(s)
			}
		}
		equal(t, "events of one that queued", queued, []string{
			"0s wait wait.queued=1 wait.subscribed=false",
			"500ms woken waited=0.5 woken.by=turn",
			"500ms attempt attempt.elapsed=0 attempt.sends=1 holder.owner=me outcome=held",
			"500ms wait wait.for=2 wait.queued=0 wait.subscribed=false",
			"1s woken waited=0.5 woken.by=release",
			"1s attempt attempt.elapsed=0 attempt.sends=1 outcome=acquired",
		})
	})
}

// A hand-over names the former holder, if owners are shown.
func TestHandOver(t *testing.T) {
	t.Parallel()
	for show, want := range map[bool]string{false: "", true: " holder.owner=before"} {
		synctest.Test(t, func(t *testing.T) {
			r := record()
			l := r.middleware(tracing.Config{ShowOwner: show})(locker.Func(func(ctx context.Context, req locker.Request) (*locker.Lock, error) {
				trace := locktrace.From(ctx)
				trace.Waiting(ctx, locktrace.WaitingInfo{Name: req.Name, Queued: 1})
				trace.Woken(ctx, locktrace.WokenInfo{Name: req.Name, By: locktrace.ByHandOver, From: "before"})
				return nil, errors.New("broken")
			}))
			_, _ = l.Acquire(t.Context(), locker.Request{Name: "job"})
			equal(t, "events", events(r.only(t, "acquire lock")), []string{
				"0s wait wait.queued=1 wait.subscribed=false", "0s woken" + want + " waited=0 woken.by=hand-over",
			})
		})
	}
}

// refused is a strategy that reports an attempt, and refuses.
func refused(s locktrace.Source) locker.Locker {
	return locker.Func(func(ctx context.Context, req locker.Request) (*locker.Lock, error) {
		err := &locker.ContentionError{Name: req.Name, Note: req.Note}
		locktrace.From(ctx).Attempt(ctx, locktrace.AttemptInfo{Source: s, Name: req.Name, Sends: 1, Err: err})
		return nil, err
	})
}

func TestServerAttributes(t *testing.T) {
	t.Parallel()
	for address, attrs := range map[string]string{
		"":                      "",
		"localhost:6379":        "server.address=localhost server.port=6379 ",
		"[::1]:7000":            "server.address=::1 server.port=7000 ",
		"/run/redis.sock":       "server.address=/run/redis.sock ",
		"a:7000,b:7000":         "server.address=a:7000,b:7000 ",
		"a.example:not-a-port":  "server.address=a.example:not-a-port ",
		"a.example:7000,b:7000": "server.address=a.example:7000,b:7000 ",
	} {
		r := record()
		inner := refused(locktrace.Source{Strategy: "single", Client: "go-redis", Address: address})
		_, _ = r.middleware(tracing.Config{})(inner).Acquire(t.Context(), locker.Request{Name: "a"})
		s := r.only(t, "acquire lock")
		want(t, s, "attempts=1 contended=true db.system.name=redis lock.mode=exclusive lock.name=a outcome=held provider=go-redis "+attrs+"strategy=single waited=0", "Unset")
	}
}

// Names, owners and notes may contain any bytes, but an exporter sends text: one attribute of
// invalid UTF-8 would lose the whole batch.
func TestAnyBytes(t *testing.T) {
	t.Parallel()
	const odd = "a\xff\xfeb"
	r, server := record(), lockertest.New()
	l := r.middleware(tracing.Config{ShowOwner: true})(server)
	locker.Must(l.Acquire(t.Context(), locker.Request{Name: odd, Owner: odd, Note: odd}))
	_, err := l.Acquire(t.Context(), locker.Request{Name: odd, Owner: "other\xff"})
	if held, ok := errors.AsType[*locker.ContentionError](err); !ok || held.Note != odd || held.Owner != odd {
		t.Errorf("refused with %v, want the holder as it is", err)
	}
	server.FailAcquire(&driver.ServerError{Text: "ERR " + odd})
	_, _ = l.Acquire(t.Context(), locker.Request{Name: "another"})
	server.Expire(odd)
	all := ""
	for _, s := range r.Ended() {
		all += text(s.Attributes()) + fmt.Sprint(events(s), s.Status())
	}
	if !utf8.ValidString(all) || strings.Count(all, "a\uFFFDb") < 5 {
		t.Errorf("the spans have %q", all)
	}
}

// A Locker that panics ends its span.
func TestPanic(t *testing.T) {
	t.Parallel()
	r := record()
	l := r.middleware(tracing.Config{})(locker.Func(func(context.Context, locker.Request) (*locker.Lock, error) { panic("x") }))
	check.Panics(t, "x", func() { _, _ = l.Acquire(t.Context(), locker.Request{Name: "a"}) })
	want(t, r.only(t, "acquire lock"), "attempts=0 contended=false error.type=panic lock.mode=exclusive lock.name=a outcome=error waited=0",
		"Error: Acquire panicked, or ended its goroutine")
}

// A Locker may return a zero Lock, as test doubles do.
func TestNoLock(t *testing.T) {
	t.Parallel()
	for _, none := range []*locker.Lock{nil, {}} {
		r := record()
		l := r.middleware(tracing.Config{})(locker.Func(func(context.Context, locker.Request) (*locker.Lock, error) { return none, nil }))
		if lock, err := l.Acquire(t.Context(), locker.Request{Name: "a"}); lock != none || err != nil {
			t.Errorf("Acquire: %v, %v", lock, err)
		}
		check.Equal(t, "spans", len(r.Started()), 1)
	}
}

// An outage's error names the holder before it in its text alone: it shows neither the trace context nor,
// in the span, the owner.
func TestOutageAfterARefusal(t *testing.T) {
	bubble(t, func(t *testing.T, server *lockertest.Locker, r *recorded) {
		server.Hold(locker.Request{Name: "a", Owner: "w7", Note: "nightly traceparent=" + foreign, TTL: time.Minute})
		time.AfterFunc(time.Second, func() { server.SetOutage(lockertest.Silent) })
		_, err := locker.Chain(server, r.middleware(tracing.Config{}), waitsFor(3*time.Second)).Acquire(t.Context(),
			locker.Request{Name: "a", MaxWait: 8 * time.Second})
		if text := err.Error(); !strings.Contains(text, `owner "w7"`) || !strings.Contains(text, `note "nightly"`) || strings.Contains(text, "traceparent") {
			t.Errorf("the caller gets %q", text)
		}
		if _, refused := errors.AsType[*locker.ContentionError](err); refused || errors.Is(err, locker.ErrNotAcquired) {
			t.Errorf("%v matches a refusal", err)
		}
		status := r.only(t, "acquire lock").Status().Description
		if !strings.Contains(status, `note "nightly"`) || strings.Contains(status, "w7") || strings.Contains(status, "traceparent") {
			t.Errorf("the span's status is %q", status)
		}
	})
}
