package lockertest_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lockertest"
	"github.com/holdfast-go/holdfast/locker/locktrace"
)

func acquire(t *testing.T, l locker.Locker, req locker.Request) *locker.Lock {
	t.Helper()
	lock, err := l.Acquire(t.Context(), req)
	if err != nil {
		t.Fatalf("Acquire(%+v): %v", req, err)
	}
	return lock
}

func release(t *testing.T, lock *locker.Lock) {
	t.Helper()
	if err := lock.Release(t.Context()); err != nil {
		t.Fatalf("Release: %v", err)
	}
}

func inspect(t *testing.T, l *lockertest.Locker, name string) locker.State {
	t.Helper()
	state, err := l.Inspect(t.Context(), name)
	if err != nil {
		t.Fatalf("Inspect(%q): %v", name, err)
	}
	return state
}

// advance lets d pass on the clock of a bubble, and lets everybody act on it.
func advance(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func wantError(t *testing.T, what string, err error, want ...error) {
	t.Helper()
	for _, w := range want {
		if !errors.Is(err, w) {
			t.Errorf("%s: %v, want an error that matches %q", what, err, w)
		}
	}
}

func wantOp(t *testing.T, err error, op string) {
	t.Helper()
	var oe *locker.OpError
	if !errors.As(err, &oe) || oe.Op != op {
		t.Errorf("error %v, want an OpError of %q", err, op)
	}
}

func TestZeroLockerIsReady(t *testing.T) {
	t.Parallel()
	var l lockertest.Locker
	lock := acquire(t, &l, locker.Request{Name: "a"})
	if got := lock.TTL(); got != locker.DefaultTTL {
		t.Errorf("TTL of a request without: %v, want %v", got, locker.DefaultTTL)
	}
	if got := inspect(t, &l, "a").Owner; got != "" {
		t.Errorf("stored owner %q of a request without, want none", got)
	}
	release(t, lock)
	if got := inspect(t, &l, "a"); got != (locker.State{}) {
		t.Errorf("after the release: %+v, want nothing", got)
	}
}

func TestPermitsAreRefused(t *testing.T) {
	t.Parallel()
	if lock, err := lockertest.New().Acquire(t.Context(), locker.Request{Name: "a", Permits: 2}); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("acquired %v, %v; want ErrUnsupported", lock, err)
	}
}

func TestContention(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := lockertest.New()
		acquire(t, l, locker.Request{Name: "a", Owner: "w1", Note: "host 1", TTL: time.Minute})
		advance(10 * time.Second)
		_, err := l.Acquire(t.Context(), locker.Request{Name: "a"})
		var ce *locker.ContentionError
		if !errors.As(err, &ce) {
			t.Fatalf("Acquire: %v, want a ContentionError", err)
		}
		want := locker.ContentionError{
			Name: "a", Owner: "w1", Note: "host 1", Left: 50 * time.Second, RetryAfter: 50 * time.Second, Channel: ce.Channel, Queue: true, Ordered: true,
		}
		if *ce != want || ce.Channel.IsZero() {
			t.Errorf("refusal %+v, want %+v with a channel", *ce, want)
		}
		state := inspect(t, l, "a")
		if want := (locker.State{Held: true, Owner: "w1", Note: "host 1", Holds: 1, Left: 50 * time.Second}); state != want {
			t.Errorf("state %+v, want %+v", state, want)
		}
	})
}

// A writer must wait for the reader that stays longest, who may not be the one that came last.
func TestContentionWithReaders(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := lockertest.New()
		for _, ttl := range []time.Duration{time.Second, time.Minute, 2 * time.Second} {
			acquire(t, l, locker.Request{Name: "a", Mode: locker.Shared, TTL: ttl, Owner: ttl.String()})
		}
		_, err := l.Acquire(t.Context(), locker.Request{Name: "a"})
		var ce *locker.ContentionError
		if !errors.As(err, &ce) || ce.Left != time.Minute || ce.Owner != "1s" {
			t.Errorf("Acquire: %v, want a refusal by 1s for a minute", err)
		}
		advance(time.Second)
		if state := inspect(t, l, "a"); state.Holds != 2 || state.Owner != "1m0s" || state.Left != 59*time.Second {
			t.Errorf("state %+v after the first reader's lease, want two holds, of 1m0s, for 59s", state)
		}
	})
}

func TestBadRequests(t *testing.T) {
	t.Parallel()
	over, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("user went home")
	cancel(cause)
	tests := []struct {
		name string
		ctx  context.Context
		req  locker.Request
		want []error
	}{
		{"nil ctx", nil, locker.Request{Name: "a"}, []error{locker.ErrInvalid}},
		{"cancelled ctx", over, locker.Request{Name: "a"}, []error{context.Canceled, cause}},
		{"no name", t.Context(), locker.Request{}, []error{locker.ErrInvalid}},
		{"short TTL", t.Context(), locker.Request{Name: "a", TTL: 1}, []error{locker.ErrInvalid}},
		{"unknown mode", t.Context(), locker.Request{Name: "a", Mode: 7}, []error{locker.ErrInvalid}},
		{"long owner in ctx", locker.WithOwner(t.Context(), strings.Repeat("o", 1025)), locker.Request{Name: "a"}, []error{locker.ErrInvalid}},
		{"long note", t.Context(), locker.Request{Name: "a", Note: strings.Repeat("n", 1025)}, []error{locker.ErrInvalid}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			l := lockertest.New()
			l.FailAcquire(errors.New("kept for a valid request"))
			lock, err := l.Acquire(tt.ctx, tt.req)
			if lock != nil {
				t.Errorf("got a Lock beside %v", err)
			}
			wantError(t, "Acquire", err, tt.want...)
			wantOp(t, err, "acquire")
			if inspect(t, l, "a").Held {
				t.Error("it holds the name")
			}
			if _, err := l.Acquire(t.Context(), locker.Request{Name: "a"}); err == nil {
				t.Error("it used up the failure that was set")
			}
		})
	}
}

func TestTraces(t *testing.T) {
	t.Parallel()
	l := lockertest.New()
	var attempts []locktrace.AttemptInfo
	var acquired []locktrace.AcquiredInfo
	ctx := locktrace.With(t.Context(), &locktrace.Trace{
		Attempt: func(_ context.Context, info locktrace.AttemptInfo) {
			inspect(t, l, info.Name) // a callback may use the Locker
			attempts = append(attempts, info)
		},
		Acquired: func(_ context.Context, info locktrace.AcquiredInfo) {
			inspect(t, l, info.Name)
			acquired = append(acquired, info)
		},
	})
	for range 2 {
		_, _ = l.Acquire(ctx, locker.Request{Name: "a"})
	}
	if len(attempts) != 2 || attempts[0].Err != nil || !errors.Is(attempts[1].Err, locker.ErrNotAcquired) {
		t.Errorf("attempts %+v, want one that won and one refused", attempts)
	}
	if len(acquired) != 1 || acquired[0].Strategy != "lockertest" || acquired[0].Name != "a" {
		t.Errorf("acquired %+v, want one, of lockertest", acquired)
	}
}
