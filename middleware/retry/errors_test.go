package retry_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/holdfast-go/holdfast/internal/argument"
	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/middleware/retry"
)

var (
	errCut     = errors.New("connection cut")
	handle     = locker.NewLock(context.Background(), lease.HoldInfo{Name: name, Token: "t"}, nil).Handle()
	errUnknown = fmt.Errorf("%w: %w", locker.ErrUnknownOutcome, errCut)
)

func reply(text string) error { return &driver.ServerError{Text: text} }

// When an acquire tries again: by default, with FailFast, and in a Resume.
func TestWhatIsRetried(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name                      string
		err                       error
		acquire, failFast, resume bool
	}{
		{"held", &locker.ContentionError{Name: name}, true, true, false},
		{"held, without details", locker.ErrNotAcquired, true, true, false},
		{"transport", errCut, true, false, false},
		{"transport, never sent", driver.NotSent(errCut), true, false, true},
		{"unknown outcome", errUnknown, true, false, false},
		{"unknown outcome, the last send never left", fmt.Errorf("%w: %w", locker.ErrUnknownOutcome, driver.NotSent(errCut)), true, false, false},
		{"a deadline of the strategy's own", context.DeadlineExceeded, true, false, false},
		{"LOADING", reply("LOADING Redis is loading the dataset in memory"), true, false, true},
		{"CLUSTERDOWN", reply("CLUSTERDOWN The cluster is down"), true, false, true},
		{"READONLY", reply("READONLY You can't write against a read only replica."), true, false, true},
		{"TRYAGAIN", reply("TRYAGAIN Multiple keys request during rehashing of slot"), true, false, true},
		{"OOM", reply("OOM command not allowed when used memory > 'maxmemory'"), true, false, true},
		{"lost before it was had", fmt.Errorf("%w: answered too late", locker.ErrLost), true, false, false},
		{"lost before it was had, for a server error", fmt.Errorf("%w: %w", locker.ErrLost, reply("ERR odd")), true, false, false},
		{"not held", locker.ErrNotHeld, true, false, false},
		{"WRONGTYPE", reply("WRONGTYPE Operation against a key holding the wrong kind of value"), false, false, false},
		{"NOAUTH", reply("NOAUTH Authentication required."), false, false, false},
		{"NOPERM", reply("NOPERM this user has no permissions"), false, false, false},
		{"another server error", reply("ERR unknown command"), false, false, false},
		{"another server error, unknown outcome", fmt.Errorf("%w: %w", locker.ErrUnknownOutcome, reply("ERR odd")), false, false, false},
		{"invalid", argument.Invalid("it", "bad", "good"), false, false, false},
		{"closed", locker.ErrClosed, false, false, false},
		{"unsupported", fmt.Errorf("shared: %w", errors.ErrUnsupported), false, false, false},
	}
	for _, tt := range tests {
		for _, kind := range []struct {
			name    string
			cfg     retry.Config
			req     locker.Request
			retried bool
		}{
			{"acquire", retry.Config{}, locker.Request{Name: name}, tt.acquire},
			{"acquire with FailFast", retry.Config{FailFast: true}, locker.Request{Name: name}, tt.failFast},
			{"acquire with an owner", retry.Config{}, locker.Request{Name: name, Owner: "me"}, tt.acquire},
			{"resume", retry.Config{}, locker.Request{Name: name, Resume: handle}, tt.resume},
			{"resume with FailFast", retry.Config{FailFast: true}, locker.Request{Name: name, Resume: handle}, false},
			{"no wait", retry.Config{}, locker.Request{Name: name, NoWait: true}, false},
		} {
			t.Run(tt.name+"/"+kind.name, func(t *testing.T) {
				bubble(t, func(t *testing.T, s *server) {
					first := &locker.OpError{Op: "acquire", Name: name, Err: tt.err}
					s.answer = func(n int, _ locker.Request) error {
						if n == 0 {
							return tt.err
						}
						return nil
					}
					kind.cfg.Policy = constant(time.Second)
					lock, err := wrap(t, s, kind.cfg).Acquire(t.Context(), kind.req)
					if !kind.retried {
						check.EqualSlices(t, "attempts", s.times(), []time.Duration{0})
						check.Is(t, err, tt.err)
						if err == nil || err.Error() != first.Error() {
							t.Errorf("error %v, want %v", err, first)
						}
						return
					}
					if err != nil || lock == nil {
						t.Fatalf("Acquire: %v", err)
					}
					check.EqualSlices(t, "attempts", s.times(), []time.Duration{0, time.Second})
				})
			})
		}
	}
}

// Bad input and an ended ctx are refused before anything is sent.
func TestRefusedArguments(t *testing.T) {
	t.Parallel()
	why := errors.New("shutting down")
	ended, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	tests := []struct {
		name string
		ctx  context.Context
		req  locker.Request
		want []error
		text string
	}{
		{"nil ctx", nil, locker.Request{Name: name}, []error{locker.ErrInvalid}, `holdfast: acquire "job": invalid Acquire ctx`},
		{"no name", t.Context(), locker.Request{}, []error{locker.ErrInvalid}, `holdfast: acquire "": invalid Request.Name`},
		{"negative MaxWait", t.Context(), locker.Request{Name: name, MaxWait: -1}, []error{locker.ErrInvalid}, "Request.MaxWait"},
		{"NoWait too", t.Context(), locker.Request{Name: name, NoWait: true, TTL: -1}, []error{locker.ErrInvalid}, "Request.TTL"},
		{"resume of another name", t.Context(), locker.Request{Name: "x", Resume: handle}, []error{locker.ErrInvalid}, `holdfast: resume "x"`},
		{"ended ctx", ended, locker.Request{Name: name}, []error{context.Canceled, why}, `holdfast: acquire "job": context canceled: shutting down`},
		{"ended ctx, NoWait", ended, locker.Request{Name: name, NoWait: true}, []error{context.Canceled, why}, ""},
		{"ended ctx, MaxWait", ended, locker.Request{Name: name, MaxWait: 1}, []error{context.Canceled, why}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newServer()
			lock, err := wrap(t, s, retry.Config{}).Acquire(tt.ctx, tt.req)
			if lock != nil || len(s.times()) != 0 {
				t.Errorf("lock %v, attempts %v", lock, s.times())
			}
			match(t, err, tt.want, []error{locker.ErrNotAcquired, locker.ErrMaxWait})
			if op, ok := errors.AsType[*locker.OpError](err); !ok || !strings.Contains(op.Error(), tt.text) {
				t.Errorf("text %q\nwant %q", err, tt.text)
			}
		})
	}
	t.Run("nil Locker", func(t *testing.T) {
		t.Parallel()
		_, err := wrap(t, nil, retry.Config{}).Acquire(t.Context(), locker.Request{Name: name})
		check.Is(t, err, locker.ErrInvalid)
	})
}

func TestConfig(t *testing.T) {
	t.Parallel()
	for what, cfg := range map[string]retry.Config{
		"MaxAttempts": {MaxAttempts: -1},
		"WakeJitter":  {WakeJitter: -1},
	} {
		mw, err := retry.New(cfg)
		var invalid *locker.InvalidError
		if mw != nil || !errors.As(err, &invalid) || invalid.What != "retry.Config."+what {
			t.Errorf("%s: Middleware %v, error %v", what, mw != nil, err)
		}
	}
}

// The Policy is called once for each request that waits. If it returns nil, the acquire fails.
func TestPolicyPerRequest(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		s.noPubSub = true
		made := 0
		l := wrap(t, s, retry.Config{Policy: func() backoff.BackOff { made++; return tries(time.Second, 2)() }})
		lock, err := l.Acquire(t.Context(), locker.Request{Name: name})
		if err != nil || made != 0 {
			t.Fatalf("Acquire: %v, after %d policies", err, made)
		}
		for range 3 {
			_, err := l.Acquire(t.Context(), locker.Request{Name: name})
			check.Is(t, err, locker.ErrNotAcquired)
		}
		if got, want := len(s.times()), 1+3*3; made != 3 || got != want {
			t.Errorf("%d policies, %d attempts; want 3, %d", made, got, want)
		}
		check.OK(t, lock.Release(t.Context()))
	})
}

func TestPolicyThatReturnsNil(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		s.hold()
		l := wrap(t, s, retry.Config{Policy: func() backoff.BackOff { return nil }})
		lock, err := l.Acquire(t.Context(), locker.Request{Name: name})
		match(t, err, []error{locker.ErrInvalid}, []error{locker.ErrNotAcquired})
		if lock != nil || len(s.times()) != 1 {
			t.Errorf("lock %v, attempts %v", lock, s.times())
		}
	})
}

// A test double may return a Lock that is not held.
func TestLockThatIsNotHeld(t *testing.T) {
	t.Parallel()
	for _, want := range []*locker.Lock{nil, {}} {
		inner := locker.Func(func(context.Context, locker.Request) (*locker.Lock, error) { return want, nil })
		lock, err := wrap(t, inner, retry.Config{}).Acquire(t.Context(), locker.Request{Name: name})
		if err != nil || lock != want {
			t.Errorf("lock %v, error %v", lock, err)
		}
		check.Is(t, lock.Err(), locker.ErrNotHeld)
	}
}
