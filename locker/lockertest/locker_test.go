package lockertest_test

import (
	"context"
	"errors"
	"strings"
	"sync"
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

func TestModes(t *testing.T) {
	t.Parallel()
	const ex, sh = locker.Exclusive, locker.Shared
	tests := []struct {
		name  string
		held  []locker.Mode
		asked locker.Mode
		ok    bool
	}{
		{"exclusive on a free name", nil, ex, true},
		{"shared on a free name", nil, sh, true},
		{"exclusive beside exclusive", []locker.Mode{ex}, ex, false},
		{"shared beside exclusive", []locker.Mode{ex}, sh, false},
		{"exclusive beside shared", []locker.Mode{sh}, ex, false},
		{"shared beside shared", []locker.Mode{sh, sh}, sh, true},
		{"exclusive beside several shared", []locker.Mode{sh, sh}, ex, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			l := lockertest.New()
			for _, mode := range tt.held {
				acquire(t, l, locker.Request{Name: "a", Mode: mode})
			}
			lock, err := l.Acquire(t.Context(), locker.Request{Name: "a", Mode: tt.asked})
			if tt.ok != (err == nil) || tt.ok != (lock != nil) {
				t.Fatalf("Acquire: %v, %v; want success: %v", lock, err, tt.ok)
			}
			if !tt.ok {
				wantError(t, "Acquire", err, locker.ErrNotAcquired)
				wantOp(t, err, "acquire")
				return
			}
			if lock.Mode() != tt.asked || inspect(t, l, "a").Holds != len(tt.held)+1 {
				t.Errorf("mode %v, %d holds; want %v, %d", lock.Mode(), inspect(t, l, "a").Holds, tt.asked, len(tt.held)+1)
			}
			if acquire(t, l, locker.Request{Name: "b"}) == nil {
				t.Error("another name is not free")
			}
		})
	}
}

// It is no reentrant lock, whoever asks.
func TestOwnerDoesNotReenter(t *testing.T) {
	t.Parallel()
	l := lockertest.New()
	ctx := locker.WithOwner(t.Context(), "me")
	lock, err := l.Acquire(ctx, locker.Request{Name: "a"})
	if err != nil || lock.Owner() != "me" {
		t.Fatalf("Acquire: %v, %v; want a Lock of the owner in ctx", lock, err)
	}
	_, err = l.Acquire(ctx, locker.Request{Name: "a"})
	wantError(t, "Acquire by the same owner", err, locker.ErrNotAcquired)
}

func TestOwnerOfRequestWins(t *testing.T) {
	t.Parallel()
	l := lockertest.New()
	lock, err := l.Acquire(locker.WithOwner(t.Context(), "ctx"), locker.Request{Name: "a", Owner: "request"})
	if err != nil || lock.Owner() != "request" {
		t.Fatalf("Acquire: %v, %v; want the request's owner", lock, err)
	}
	other := acquire(t, l, locker.Request{Name: "b"})
	if other.Owner() == "" || other.Owner() == lock.Owner() {
		t.Errorf("owner %q of a request without, want a random one", other.Owner())
	}
	if got := inspect(t, l, "b").Owner; got != "" {
		t.Errorf("stored owner %q of a request without, want none", got)
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

func TestBadInspect(t *testing.T) {
	t.Parallel()
	l := lockertest.New()
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for _, tt := range []struct {
		ctx  context.Context
		name string
		want error
	}{{nil, "a", locker.ErrInvalid}, {over, "a", context.Canceled}, {t.Context(), "a}b", locker.ErrInvalid}} {
		state, err := l.Inspect(tt.ctx, tt.name)
		wantError(t, "Inspect", err, tt.want)
		wantOp(t, err, "inspect")
		if state != (locker.State{}) {
			t.Errorf("state %+v beside an error", state)
		}
	}
}

func TestCancelledCtx(t *testing.T) {
	t.Parallel()
	l := lockertest.New()
	lock := acquire(t, l, locker.Request{Name: "a"})
	over, cancel := context.WithCancel(t.Context())
	cancel()
	wantError(t, "Renew", lock.Renew(over, 0), context.Canceled)
	wantError(t, "Downgrade", lock.Downgrade(over), context.Canceled)
	if lock.Err() != nil || lock.Mode() != locker.Exclusive {
		t.Errorf("%v: a cancelled call changed it", lock)
	}
	if err := lock.Release(over); err != nil {
		t.Errorf("Release under a cancelled ctx: %v, want it done", err)
	}
	if inspect(t, l, "a").Held {
		t.Error("still held")
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

// Many goroutines, one name: never two of them inside, and no hold left.
func TestExclusion(t *testing.T) {
	t.Parallel()
	l := lockertest.New()
	var inside, ran int
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 200 {
				_, err := locker.Try(t.Context(), l, locker.Request{Name: "a"}, func(context.Context, *locker.Lock) error {
					inside++ // the race detector sees a second one, too
					defer func() { inside-- }()
					if inside != 1 {
						t.Errorf("%d inside", inside)
					}
					ran++
					return nil
				})
				if err != nil {
					t.Errorf("Try: %v", err)
				}
			}
		})
	}
	wg.Wait()
	if ran == 0 || inspect(t, l, "a").Held {
		t.Errorf("ran %d times, state %+v", ran, inspect(t, l, "a"))
	}
}
