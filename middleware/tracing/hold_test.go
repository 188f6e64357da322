package tracing_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/locker/lockertest"
	"github.com/holdfast-go/holdfast/locker/locktrace"
	"github.com/holdfast-go/holdfast/middleware/tracing"
	"github.com/holdfast-go/holdfast/strategies/watchdog"
)

// The span of a hold records how the hold ended.
func TestHolds(t *testing.T) { //nolint:tparallel // bubble does
	t.Parallel()
	const exclusive = "lock.fence=1 lock.mode=exclusive lock.name=job "
	const lost, wasLost = "error.type=lost " + exclusive + "lock.ttl=30 outcome=lost renewals=0", `Error: holdfast: lock "job" was lost: `
	tests := []struct {
		name          string
		use           func(t *testing.T, server *lockertest.Locker, lock *locker.Lock)
		lasts         time.Duration
		events        []string
		attrs, status string
	}{
		{
			name: "released", use: func(t *testing.T, _ *lockertest.Locker, lock *locker.Lock) {
				elapse(time.Second)
				check.OK(t, errors.Join(lock.Renew(t.Context(), 0), lock.Renew(t.Context(), time.Hour), lock.Release(t.Context())))
				check.Is(t, lock.Release(t.Context()), locker.ErrReleased)
			},
			lasts: time.Second, events: []string{"1s renew lock.ttl=30 outcome=renewed", "1s renew lock.ttl=3600 outcome=renewed"},
			attrs: exclusive + "lock.ttl=30 outcome=released renewals=2", status: "Unset",
		},
		{
			name: "forgotten", use: func(*testing.T, *lockertest.Locker, *locker.Lock) { elapse(time.Minute) },
			lasts: 30 * time.Second, attrs: lost, status: wasLost + "its Deadline passed before it was renewed",
		},
		{
			name: "found gone by a renewal, then released", use: func(t *testing.T, server *lockertest.Locker, lock *locker.Lock) {
				elapse(time.Second)
				server.FailRenew(&driver.ServerError{Text: "LOADING x"})
				server.FailRenew(locker.ErrNotHeld)
				_, _ = lock.Renew(t.Context(), 0), lock.Renew(t.Context(), 0)
				elapse(time.Second)
				_ = lock.Release(t.Context())
			},
			lasts: time.Second, events: []string{"1s renew db.response.status_code=LOADING error.type=LOADING lock.ttl=30 outcome=error"},
			attrs: lost, status: wasLost + "its key was gone at the renewal (ended by Break, deleted, expired, or the server lost its data)",
		},
		{
			name: "taken over by a resume", use: func(t *testing.T, server *lockertest.Locker, lock *locker.Lock) {
				locker.Must(locker.Resume(t.Context(), server, lock.Handle()))
				_ = lock.Renew(t.Context(), 0)
			},
			attrs: lost, status: wasLost + "its key was gone at the renewal (ended by Break, deleted, expired, taken over by a resume, or the server lost its data)",
		},
		{
			name: "release that failed", use: func(t *testing.T, server *lockertest.Locker, lock *locker.Lock) {
				server.FailRelease(&driver.ServerError{Text: "NOPERM x"})
				_ = lock.Release(t.Context())
			},
			attrs:  "db.response.status_code=NOPERM error.type=NOPERM " + exclusive + "lock.ttl=30 outcome=error renewals=0",
			status: `Error: holdfast: release "job": server error: NOPERM x`,
		},
		{
			name: "downgraded and upgraded", use: func(t *testing.T, server *lockertest.Locker, lock *locker.Lock) {
				check.OK(t, lock.Downgrade(t.Context()))
				server.Hold(locker.Request{Name: "job", Mode: locker.Shared, Note: "r2 traceparent=" + foreign})
				err := lock.Upgrade(t.Context())
				if held, ok := errors.AsType[*locker.ContentionError](err); !ok || held.Note != "r2" {
					t.Errorf("Upgrade: %v", err)
				}
				server.Expire("job")
			},
			events: []string{"0s convert lock.mode=shared outcome=converted", "0s convert lock.mode=exclusive outcome=held"},
			attrs:  lost, status: wasLost + "expired by the test",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, server *lockertest.Locker, r *recorded) {
				l := r.middleware(tracing.Config{})(server)
				lock := locker.Must(l.Acquire(t.Context(), locker.Request{Name: "job", Fenced: true, Owner: "me"}))
				tt.use(t, server, lock)
				synctest.Wait()
				runtime.KeepAlive(lock) // a Lock collected before is reported as forgotten
				s := r.only(t, "hold lock")
				want(t, s, tt.attrs, tt.status)
				equal(t, "events", events(s), tt.events)
				check.Equal(t, "duration of the span", s.EndTime().Sub(s.StartTime()), tt.lasts)
			})
		})
	}
}

// The span of a hold is a child of the caller's span, as the acquisition's is. Without a caller's
// span it is a child of the acquisition's span. It links to the acquisition.
func TestParents(t *testing.T) {
	t.Parallel()
	for _, called := range []bool{false, true} {
		r := record()
		l := r.middleware(tracing.Config{})(lockertest.New())
		ctx := t.Context()
		var caller trace.Span
		if called {
			ctx, caller = r.provider.Tracer("test").Start(ctx, "caller")
		}
		var work trace.SpanContext
		err := locker.Do(ctx, l, locker.Request{Name: "a"}, func(ctx context.Context, lock *locker.Lock) error {
			work = trace.SpanContextFromContext(ctx)
			return nil
		})
		check.Must(t, err)
		if called {
			caller.End()
		}
		acquisition, hold := r.only(t, "acquire lock"), r.only(t, "hold lock")
		if !work.Equal(hold.SpanContext()) {
			t.Errorf("the work's ctx carries %v, want that of the hold, %v", work, hold.SpanContext())
		}
		parent := acquisition.SpanContext()
		if called {
			parent = caller.SpanContext()
			check.Equal(t, "what the acquisition is below", acquisition.Parent().SpanID(), parent.SpanID())
		}
		if hold.Parent().SpanID() != parent.SpanID() || hold.SpanContext().TraceID() != acquisition.SpanContext().TraceID() {
			t.Errorf("called %v: the hold is below %v, want %v", called, hold.Parent(), parent)
		}
		if links := hold.Links(); len(links) != 1 || !links[0].SpanContext.Equal(acquisition.SpanContext()) || text(links[0].Attributes) != "link=acquisition" {
			t.Errorf("the hold's links: %+v", hold.Links())
		}
	}
}

// A renewal by the watchdog is an event, wherever the watchdog is in the chain.
func TestWatchdogRenewals(t *testing.T) { //nolint:tparallel // bubble does
	t.Parallel()
	for name, outside := range map[string]bool{"watchdog outside": true, "watchdog inside": false} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, server *lockertest.Locker, r *recorded) {
				chain := []locker.Middleware{r.middleware(tracing.Config{}), locker.Must(watchdog.New(watchdog.Config{}))}
				if outside {
					slices.Reverse(chain)
				}
				l := locker.Chain(server, chain...)
				lock := locker.Must(l.Acquire(t.Context(), locker.Request{Name: "job"}))
				elapse(35 * time.Second)
				check.OK(t, lock.Release(t.Context()))
				s := r.only(t, "hold lock")
				check.Within(t, "renewals in 35 s", len(s.Events()), 3, 4)
			})
		})
	}
}

// A renewal in flight when the lock is released is not recorded as a failure.
func TestReleaseOvertakesRenewal(t *testing.T) {
	t.Parallel()
	r := record()
	inner := locker.Func(func(ctx context.Context, req locker.Request) (*locker.Lock, error) {
		lock, err := lockertest.New().Acquire(ctx, req)
		lock.Hold().Wrap(func(l lease.Lease) lease.Lease { return &overtaken{l, lock} })
		return lock, err
	})
	cycle(t, t.Context(), r.middleware(tracing.Config{})(inner))
	hold := r.only(t, "hold lock")
	want(t, hold, "lock.mode=exclusive lock.name=a lock.ttl=30 outcome=released renewals=0", "Unset")
	equal(t, "events", events(hold), []string{})
}

// overtaken renews while the release is in flight.
type overtaken struct {
	lease.Lease
	lock *locker.Lock
}

func (o *overtaken) Do(ctx context.Context, op lease.Op) (lease.Result, error) {
	if op.Kind == lease.OpRelease {
		_ = o.lock.Renew(ctx, 0)
	}
	return o.Lease.Do(ctx, op)
}

// An unsampled acquisition is passed on without a Trace, a note or a second span.
func TestNotSampled(t *testing.T) {
	t.Parallel()
	l := tracing.New(tracing.Config{TracerProvider: sdktrace.NewTracerProvider(sdktrace.WithSampler(sdktrace.NeverSample()))})(
		locker.Func(func(ctx context.Context, req locker.Request) (*locker.Lock, error) {
			if sc := trace.SpanContextFromContext(ctx); !sc.IsValid() || sc.IsSampled() {
				t.Errorf("what the client does is below %v, want an unsampled span", sc)
			}
			if locktrace.From(ctx) != nil || req.Note != "mine" {
				t.Errorf("Trace %v, note %q", locktrace.From(ctx), req.Note)
			}
			return lockertest.New().Acquire(ctx, req)
		}))
	err := locker.Do(t.Context(), l, locker.Request{Name: "a", Note: "mine"}, func(ctx context.Context, _ *locker.Lock) error {
		check.Equal(t, "the work is below a span that nobody sees", trace.SpanContextFromContext(ctx).IsValid(), false)
		return nil
	})
	check.OK(t, err)
}
