package locker_test

import (
	"context"
	"errors"
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/locker/lockertest"
)

var errWork = errors.New("work failed")

var released = []lease.Op{{Kind: lease.OpRelease}}

// How a piece of work ends, what became of the lock, and what Do makes of both.
func TestDo(t *testing.T) {
	t.Parallel()
	req := locker.Request{Name: "a"}
	tests := []struct {
		name    string
		answer  error // to the release
		fn      func(context.Context, *locker.Lock) error
		want    []error // none: Do returns nil
		wantNot []error
	}{
		{name: "done", fn: func(context.Context, *locker.Lock) error { return nil }},
		{
			name: "failed", fn: func(context.Context, *locker.Lock) error { return errWork },
			want: []error{errWork}, wantNot: []error{locker.ErrNotHeld},
		},
		{
			name: "lost meanwhile",
			fn: func(ctx context.Context, lock *locker.Lock) error {
				lock.Hold().MarkLost(io.EOF)
				<-ctx.Done()
				return errors.Join(errWork, context.Cause(ctx))
			},
			want: []error{errWork, locker.ErrLost, io.EOF},
		},
		{
			name: "lost meanwhile, unheeded",
			fn:   func(_ context.Context, lock *locker.Lock) error { lock.Hold().MarkLost(nil); return nil },
			want: []error{locker.ErrLost},
		},
		{
			name: "past the Deadline",
			fn:   func(ctx context.Context, _ *locker.Lock) error { <-ctx.Done(); return nil },
			want: []error{locker.ErrLost}, wantNot: []error{context.Canceled},
		},
		{
			name: "past the Deadline, unheeded",
			fn:   func(context.Context, *locker.Lock) error { advance(2 * time.Minute); return errWork },
			want: []error{locker.ErrLost, errWork},
		},
		{
			name: "past the Deadline, release unknown", answer: locker.ErrUnknownOutcome,
			fn:   func(context.Context, *locker.Lock) error { advance(2 * time.Minute); return nil },
			want: []error{locker.ErrLost, locker.ErrUnknownOutcome},
		},
		{
			name: "release unknown", answer: locker.ErrUnknownOutcome, fn: func(context.Context, *locker.Lock) error { return nil },
			want: []error{locker.ErrUnknownOutcome}, wantNot: []error{locker.ErrLost, locker.ErrNotHeld},
		},
		{
			name: "failed, release unknown", answer: locker.ErrUnknownOutcome, fn: func(context.Context, *locker.Lock) error { return errWork },
			want: []error{errWork, locker.ErrUnknownOutcome}, wantNot: []error{locker.ErrLost},
		},
		{
			name: "release fails", answer: io.EOF, fn: func(context.Context, *locker.Lock) error { return nil },
			want: []error{io.EOF}, wantNot: []error{locker.ErrLost},
		},
		{
			name: "release finds it gone", answer: locker.ErrNotHeld, fn: func(context.Context, *locker.Lock) error { return errWork },
			want: []error{locker.ErrLost, errWork},
		},
		{
			name: "released by fn",
			fn:   func(ctx context.Context, lock *locker.Lock) error { return lock.Release(ctx) },
		},
		{
			name: "released by fn, which failed then",
			fn:   func(ctx context.Context, lock *locker.Lock) error { return errors.Join(errWork, lock.Release(ctx)) },
			want: []error{errWork}, wantNot: []error{locker.ErrNotHeld},
		},
		{
			name: "released by fn after the loss",
			fn: func(ctx context.Context, lock *locker.Lock) error {
				lock.Hold().MarkLost(nil)
				_ = lock.Release(ctx)
				return nil
			},
			want: []error{locker.ErrLost},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l := refusing(tt.answer)
				err := locker.Do(t.Context(), grants(l), req, tt.fn)
				wantError(t, "Do", err, tt.want...)
				wantNotError(t, "Do", err, tt.wantNot...)
				if got := l.asked(); !slices.Equal(got, released) {
					t.Errorf("asked %v, want one release", got)
				}
				if err != nil && strings.Count(err.Error(), "was lost") > 1 {
					t.Errorf("it tells the loss twice: %v", err)
				}
			})
		})
	}
}

func TestDoKeepsASingleError(t *testing.T) {
	t.Parallel()
	err := locker.Do(t.Context(), lockertest.New(), locker.Request{Name: "a"}, func(context.Context, *locker.Lock) error { return errWork })
	if err != errWork { //nolint:errorlint // the very error
		t.Errorf("Do: %#v, want fn's error as it is", err)
	}
}

func TestDoNotAcquired(t *testing.T) {
	t.Parallel()
	refused := &locker.OpError{Op: "acquire", Name: "a", Err: io.EOF}
	l := locker.Func(func(context.Context, locker.Request) (*locker.Lock, error) { return nil, refused })
	err := locker.Do(t.Context(), l, locker.Request{Name: "a"}, func(context.Context, *locker.Lock) error {
		t.Error("fn runs without the lock")
		return nil
	})
	if err != refused { //nolint:errorlint // the very error
		t.Errorf("Do: %v, want the acquire's error as it is", err)
	}
}

func TestDoRunsInTheLocksContext(t *testing.T) {
	t.Parallel()
	type key struct{}
	ctx := context.WithValue(t.Context(), key{}, "v")
	l := lockertest.New()
	var cause func() error
	err := locker.Do(ctx, l, locker.Request{Name: "a", Owner: "me"}, func(ctx context.Context, lock *locker.Lock) error {
		cause = func() error { return context.Cause(ctx) }
		owner, _ := lease.OwnerFrom(ctx, "a")
		_, other := lease.OwnerFrom(ctx, "b")
		if ctx.Value(key{}) != "v" || ctx.Err() != nil || owner != "me" || other {
			t.Errorf("value %v, Err %v, owner %q, another name's: %v", ctx.Value(key{}), ctx.Err(), owner, other)
		}
		if lock.Err() != nil || lock.Name() != "a" {
			t.Errorf("fn got %v", lock)
		}
		return nil
	})
	wantError(t, "Do", err)
	wantError(t, "the cause of fn's ctx after Do", cause(), locker.ErrReleased)
	if state, _ := l.Inspect(t.Context(), "a"); state.Held {
		t.Error("it is still held")
	}
}

// A ctx that ends while fn runs reaches fn, and does not keep the lock from being released.
func TestDoCancelled(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	l := &fakeLease{}
	err := locker.Do(ctx, grants(l), locker.Request{Name: "a"}, func(ctx context.Context, _ *locker.Lock) error {
		cancel()
		<-ctx.Done()
		return ctx.Err()
	})
	wantError(t, "Do", err, context.Canceled)
	wantNotError(t, "Do", err, locker.ErrNotHeld)
	if got := l.asked(); !slices.Equal(got, released) {
		t.Errorf("asked %v, want one release", got)
	}
}

// Do waits for fn, however late it heeds the loss.
func TestDoWaitsForFn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := lockertest.New()
		start := time.Now()
		var ended time.Duration
		err := locker.Do(t.Context(), l, locker.Request{Name: "a", TTL: time.Second}, func(ctx context.Context, _ *locker.Lock) error {
			<-ctx.Done()
			ended = time.Since(start)
			advance(time.Hour)
			return nil
		})
		wantError(t, "Do", err, locker.ErrLost)
		if took := time.Since(start); ended != time.Second || took != time.Second+time.Hour {
			t.Errorf("ctx ended after %v and Do after %v, want 1s and an hour more", ended, took)
		}
	})
}

func TestDoReleasesOnPanic(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]error{"released": nil, "release fails": io.EOF} {
		l := refusing(answer)
		func() {
			defer func() {
				if got := recover(); got != "the work's panic" {
					t.Errorf("%s: panic with %v, want fn's", name, got)
				}
			}()
			err := locker.Do(t.Context(), grants(l), locker.Request{Name: "a"}, func(context.Context, *locker.Lock) error { panic("the work's panic") })
			t.Errorf("%s: Do returned %v", name, err)
		}()
		if got := l.asked(); !slices.Equal(got, released) {
			t.Errorf("%s: asked %v, want one release", name, got)
		}
	}
}

func TestDoReleasesOnGoexit(t *testing.T) {
	t.Parallel()
	l := &fakeLease{}
	var cause func() error
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		err := locker.Do(t.Context(), grants(l), locker.Request{Name: "a"}, func(ctx context.Context, _ *locker.Lock) error {
			cause = func() error { return context.Cause(ctx) }
			runtime.Goexit() // as t.FailNow does
			return nil
		})
		t.Errorf("Do returned %v", err)
	}()
	<-gone
	if got := l.asked(); !slices.Equal(got, released) {
		t.Errorf("asked %v, want one release", got)
	}
	wantError(t, "the cause of fn's ctx", cause(), locker.ErrReleased)
}

func TestDoRefuses(t *testing.T) {
	t.Parallel()
	l, req := lockertest.New(), locker.Request{Name: "a"}
	fn := func(context.Context, *locker.Lock) error {
		t.Error("fn runs")
		return nil
	}
	tests := map[string]struct {
		ctx context.Context
		l   locker.Locker
		fn  func(context.Context, *locker.Lock) error
	}{"ctx": {nil, l, fn}, "locker": {t.Context(), nil, fn}, "function": {t.Context(), l, nil}}
	for name, tt := range tests {
		err := locker.Do(tt.ctx, tt.l, req, tt.fn)
		wantInvalid(t, "Do without "+name, err)
		wantOp(t, err, "acquire")
		if want := "invalid Do " + name + ": nil"; !strings.Contains(err.Error(), want) {
			t.Errorf("Do without %s: %v; want %q in it", name, err, want)
		}
		ran, err := locker.Try(tt.ctx, tt.l, req, tt.fn)
		wantInvalid(t, "Try without "+name, err)
		if ran {
			t.Errorf("Try without %s says that fn ran", name)
		}
	}
	if state, _ := l.Inspect(t.Context(), "a"); state.Held {
		t.Error("it is held")
	}
}

func TestTry(t *testing.T) {
	t.Parallel()
	busy := &locker.OpError{Op: "acquire", Name: "a", Err: &locker.ContentionError{Name: "a"}}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	tests := []struct {
		name    string
		ctx     context.Context
		acquire error
		fn      error
		ran     bool
		want    []error
	}{
		{"ran", t.Context(), nil, nil, true, nil},
		{"ran and failed", t.Context(), nil, errWork, true, []error{errWork}},
		{"ran and was refused another lock", t.Context(), nil, busy, true, []error{locker.ErrNotAcquired}},
		{"refused", t.Context(), busy, nil, false, nil},
		{"refused until MaxWait", t.Context(), errors.Join(busy, locker.ErrMaxWait), nil, false, nil},
		{"refused until ctx ended", cancelled, errors.Join(busy, context.Canceled), nil, false, []error{locker.ErrNotAcquired, context.Canceled}},
		{"an outage", t.Context(), io.EOF, nil, false, []error{io.EOF}},
		{"unknown", t.Context(), locker.ErrUnknownOutcome, nil, false, []error{locker.ErrUnknownOutcome}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			l := locker.Func(func(ctx context.Context, req locker.Request) (*locker.Lock, error) {
				if tt.acquire != nil {
					return nil, tt.acquire
				}
				return grants(&fakeLease{}).Acquire(ctx, req)
			})
			ran, err := locker.Try(tt.ctx, l, locker.Request{Name: "a"}, func(context.Context, *locker.Lock) error { return tt.fn })
			if ran != tt.ran {
				t.Errorf("ran %v, want %v", ran, tt.ran)
			}
			wantError(t, "Try", err, tt.want...)
		})
	}
}

// Try does not wait, but where it was told for how long.
func TestTryAsks(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		req  locker.Request
		want bool // NoWait
	}{
		{locker.Request{}, true},
		{locker.Request{NoWait: true}, true},
		{locker.Request{MaxWait: time.Second}, false},
		{locker.Request{MaxWait: time.Second, NoWait: true}, true},
	} {
		var got locker.Request
		_, _ = locker.Try(t.Context(), locker.Func(func(_ context.Context, req locker.Request) (*locker.Lock, error) {
			got = req
			return nil, io.EOF
		}), tt.req, func(context.Context, *locker.Lock) error { return nil })
		if got.NoWait != tt.want || got.MaxWait != tt.req.MaxWait {
			t.Errorf("Try(%+v) asks for NoWait %v, MaxWait %v", tt.req, got.NoWait, got.MaxWait)
		}
	}
}

func TestResume(t *testing.T) {
	t.Parallel()
	h := locker.NewHandle(lease.Grant{Name: "a", Owner: "me", Token: secret, Mode: locker.Shared, TTL: time.Hour, Fence: 7})
	var got locker.Request
	l := locker.Func(func(_ context.Context, req locker.Request) (*locker.Lock, error) {
		got = req
		return nil, locker.ErrNotHeld
	})
	_, err := locker.Resume(t.Context(), l, h)
	wantError(t, "Resume", err, locker.ErrNotHeld)
	if want := (locker.Request{Name: "a", Mode: locker.Shared, Fenced: true, Resume: h}); got != want || got.Validate() != nil {
		t.Errorf("asked %+v, want %+v", got, want)
	}
	for name, try := range map[string]func() (*locker.Lock, error){
		"no ctx":      func() (*locker.Lock, error) { return locker.Resume(nil, l, h) }, //nolint:staticcheck // nil on purpose
		"no locker":   func() (*locker.Lock, error) { return locker.Resume(t.Context(), nil, h) },
		"zero handle": func() (*locker.Lock, error) { return locker.Resume(t.Context(), l, locker.Handle{}) },
	} {
		lock, err := try()
		wantInvalid(t, name, err)
		wantOp(t, err, "resume")
		if lock != nil {
			t.Errorf("%s: a Lock beside the error", name)
		}
	}
}
