package lockertest_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lockertest"
	"github.com/holdfast-go/holdfast/locker/locktrace"
)

func acquire(t *testing.T, l locker.Locker, req locker.Request) *locker.Lock {
	t.Helper()
	return locker.Must(l.Acquire(t.Context(), req))
}

func release(t *testing.T, lock *locker.Lock) {
	t.Helper()
	check.Must(t, lock.Release(t.Context()))
}

func inspect(t *testing.T, l *lockertest.Locker, name string) locker.State {
	t.Helper()
	return locker.Must(l.Inspect(t.Context(), name))
}

func wantOp(t *testing.T, err error, op string) {
	t.Helper()
	var oe *locker.OpError
	if !errors.As(err, &oe) || oe.Op != op {
		t.Errorf("error %v, want an OpError of %q", err, op)
	}
}

func TestBadRequests(t *testing.T) {
	t.Parallel()
	over, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("user went home")
	cancel(cause)
	type test struct {
		ctx  context.Context
		req  locker.Request
		want []error
	}
	check.Each(t, map[string]test{
		"nil ctx":       {nil, locker.Request{Name: "a"}, []error{locker.ErrInvalid}},
		"cancelled ctx": {over, locker.Request{Name: "a"}, []error{context.Canceled, cause}},
		"no name":       {t.Context(), locker.Request{}, []error{locker.ErrInvalid}},
		//realtime:ok a value, no lease
		"short TTL":         {t.Context(), locker.Request{Name: "a", TTL: 1}, []error{locker.ErrInvalid}},
		"unknown mode":      {t.Context(), locker.Request{Name: "a", Mode: 7}, []error{locker.ErrInvalid}},
		"long owner in ctx": {locker.WithOwner(t.Context(), strings.Repeat("o", 1025)), locker.Request{Name: "a"}, []error{locker.ErrInvalid}},
		"long note":         {t.Context(), locker.Request{Name: "a", Note: strings.Repeat("n", 1025)}, []error{locker.ErrInvalid}},
	}, func(t *testing.T, tt test) {
		l := lockertest.New()
		l.FailAcquire(errors.New("kept for a valid request"))
		lock, err := l.Acquire(tt.ctx, tt.req)
		check.Equal(t, "Lock beside an error", lock, nil)
		check.Error(t, "Acquire", err, tt.want...)
		wantOp(t, err, "acquire")
		check.Equal(t, "held", inspect(t, l, "a").Held, false)
		check.Equal(t, "it used up the failure that was set", check.ErrOf(l.Acquire(t.Context(), locker.Request{Name: "a"})) == nil, false)
	})
}

func TestTraces(t *testing.T) {
	t.Parallel()
	l := lockertest.New()
	var events []string
	event := func(what, name, strategy string, err error) {
		inspect(t, l, name) // a callback may use the Locker
		events = append(events, fmt.Sprint(what, " ", name, " of ", strategy, ": ", errors.Is(err, locker.ErrNotAcquired)))
	}
	ctx := locktrace.With(t.Context(), &locktrace.Trace{
		Attempt:  func(_ context.Context, i locktrace.AttemptInfo) { event("attempt", i.Name, i.Strategy, i.Err) },
		Acquired: func(_ context.Context, i locktrace.AcquiredInfo) { event("acquired", i.Name, i.Strategy, nil) },
	})
	for range 2 {
		_, _ = l.Acquire(ctx, locker.Request{Name: "a"})
	}
	want := []string{"attempt a of lockertest: false", "acquired a of lockertest: false", "attempt a of lockertest: true"}
	check.EqualSlices(t, "events", events, want)
}
