package retry_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/locker/locktrace"
	"github.com/holdfast-go/holdfast/middleware/internal/telemetry"
	"github.com/holdfast-go/holdfast/middleware/retry"
)

// The error of a wait that ends without the lock.
func TestGivingUp(t *testing.T) {
	held := &locker.ContentionError{Name: name, Owner: "w7", Note: "nightly", Left: 30 * time.Second, Hint: lease.Hint{RetryAfter: 30 * time.Second}}
	refused := fmt.Errorf("%w; %w", held, errHint)
	why := errors.New("shutting down")
	type test struct {
		cfg     retry.Config
		req     locker.Request
		ctx     func(context.Context) (context.Context, context.CancelFunc)
		answers []error // the last one repeats
		took    time.Duration
		want    []error
		wantNot []error
		text    string
	}
	bubbles(t, map[string]test{
		"MaxWait, held": {
			req: locker.Request{MaxWait: 2500 * ms}, answers: []error{refused}, took: 2500 * ms,
			want: []error{locker.ErrNotAcquired, locker.ErrMaxWait}, wantNot: []error{context.DeadlineExceeded, errHint},
			text: `holdfast: acquire "job": lock is held by another, owner "w7", note "nightly", for 29.5s at most unless renewed; ` +
				`gave up after 2.5s and 3 attempts: MaxWait passed`,
		},
		"deadline, held": {
			ctx: timeout(2500 * ms), answers: []error{refused}, took: 2500 * ms,
			want: []error{locker.ErrNotAcquired, context.DeadlineExceeded}, wantNot: []error{locker.ErrMaxWait},
			text: "gave up after 2.5s and 3 attempts: context deadline exceeded",
		},
		"deadline before MaxWait": {
			ctx: timeout(500 * ms), req: locker.Request{MaxWait: time.Minute}, answers: []error{refused},
			took: 500 * ms, want: []error{locker.ErrNotAcquired, context.DeadlineExceeded}, wantNot: []error{locker.ErrMaxWait},
			text: "gave up after 500ms and 1 attempt: context deadline exceeded",
		},
		"cancelled with a cause, held": {
			answers: []error{refused}, took: 1500 * ms,
			ctx: func(ctx context.Context) (context.Context, context.CancelFunc) {
				ctx, cancel := context.WithCancelCause(ctx)
				time.AfterFunc(1500*ms, func() { cancel(why) })
				return ctx, func() { cancel(nil) }
			},
			want: []error{locker.ErrNotAcquired, context.Canceled, why}, wantNot: []error{locker.ErrMaxWait},
			text: "gave up after 1.5s and 2 attempts: context canceled: shutting down",
		},
		"cancelled because another acquire was refused, unknown": {
			took:    1500 * ms,
			answers: []error{fmt.Errorf("%w: %w", locker.ErrUnknownOutcome, errCut)},
			ctx: func(ctx context.Context) (context.Context, context.CancelFunc) {
				ctx, cancel := context.WithCancelCause(ctx)
				time.AfterFunc(1500*ms, func() { cancel(&locker.ContentionError{Name: "another"}) })
				return ctx, func() { cancel(nil) }
			},
			want: []error{locker.ErrUnknownOutcome, context.Canceled}, wantNot: []error{locker.ErrNotAcquired},
			text: "gave up after 1.5s and 2 attempts: context canceled: lock is held by another",
		},
		"MaxAttempts, held": {
			cfg: retry.Config{MaxAttempts: 4}, answers: []error{refused}, took: 3 * time.Second,
			want: []error{locker.ErrNotAcquired}, wantNot: []error{locker.ErrMaxWait, context.DeadlineExceeded},
			text: "gave up after 3s and 4 attempts: MaxAttempts reached",
		},
		"one attempt": {
			cfg: retry.Config{MaxAttempts: 1}, answers: []error{refused},
			want: []error{locker.ErrNotAcquired}, text: "gave up after 0s and 1 attempt: MaxAttempts reached",
		},
		"one attempt with an owner": {
			cfg: retry.Config{MaxAttempts: 1}, req: locker.Request{Owner: "me"}, answers: []error{refused},
			want: []error{locker.ErrNotAcquired}, text: "gave up after 0s and 1 attempt: MaxAttempts reached",
		},
		"so many tries, this far apart": {
			cfg: retry.Config{Policy: tries(200*ms, 3)}, answers: []error{refused}, took: 600 * ms,
			want: []error{locker.ErrNotAcquired}, text: "gave up after 600ms and 4 attempts: the backoff policy stopped",
		},
		"a policy that stops at once": {
			cfg:     retry.Config{Policy: func() backoff.BackOff { return &backoff.StopBackOff{} }},
			answers: []error{refused}, want: []error{locker.ErrNotAcquired}, text: "gave up after 0s and 1 attempt: the backoff policy stopped",
		},
		"MaxWait, outage": {
			req: locker.Request{MaxWait: 1500 * ms}, answers: []error{errUnknown}, took: 1500 * ms,
			want:    []error{errCut, locker.ErrUnknownOutcome, locker.ErrMaxWait},
			wantNot: []error{locker.ErrNotAcquired, context.DeadlineExceeded},
			text:    `holdfast: acquire "job": outcome is unknown: connection cut; gave up after 1.5s and 2 attempts: MaxWait passed`,
		},
		"deadline, outage after a refusal": {
			ctx: timeout(1500 * ms), answers: []error{refused, reply("LOADING it")}, took: 1500 * ms,
			want: []error{context.DeadlineExceeded}, wantNot: []error{locker.ErrNotAcquired}, text: "server error: LOADING it; gave up",
		},
		"MaxAttempts, outage": {
			cfg: retry.Config{MaxAttempts: 2}, answers: []error{errCut}, took: time.Second,
			want: []error{errCut}, wantNot: []error{locker.ErrNotAcquired}, text: "connection cut; gave up after 1s and 2 attempts: MaxAttempts reached",
		},
		"deadline, held after an outage": {
			ctx: timeout(1500 * ms), answers: []error{errCut, refused}, took: 1500 * ms,
			want: []error{context.DeadlineExceeded, locker.ErrNotAcquired}, wantNot: []error{errCut},
		},
		"resume, outage": {
			cfg: retry.Config{MaxAttempts: 3}, req: locker.Request{Resume: handle}, took: 2 * time.Second,
			answers: []error{driver.NotSent(errCut)}, want: []error{errCut}, wantNot: []error{locker.ErrNotAcquired},
			text: `holdfast: resume "job": command was not sent: connection cut; gave up after 2s and 3 attempts: MaxAttempts reached`,
		},
		"resume, MaxWait": {
			req: locker.Request{Resume: handle, MaxWait: 1500 * ms}, took: 1500 * ms,
			answers: []error{driver.NotSent(errCut)}, want: []error{errCut, locker.ErrMaxWait}, wantNot: []error{context.DeadlineExceeded},
		},
	}, func(t *testing.T, s *server, tt test) {
		s.answer = func(n int, _ locker.Request) error { return tt.answers[min(n, len(tt.answers)-1)] }
		if tt.cfg.Policy == nil {
			tt.cfg.Policy = constant(time.Second)
		}
		ctx := t.Context()
		if tt.ctx != nil {
			var cancel context.CancelFunc
			ctx, cancel = tt.ctx(ctx)
			defer cancel()
		}
		tt.req.Name = name
		lock, err := wrap(t, s, tt.cfg).Acquire(ctx, tt.req)
		if took := time.Since(s.start); lock != nil || took != tt.took {
			t.Errorf("lock %v after %v, want none after %v", lock, took, tt.took)
		}
		match(t, err, tt.want, tt.wantNot)
		if !strings.Contains(err.Error(), tt.text) || strings.Count(err.Error(), "holdfast:") != 1 {
			t.Errorf("text %q\nwant %q", err, tt.text)
		}
		var got *locker.ContentionError
		if is := errors.As(err, &got); is != errors.Is(err, locker.ErrNotAcquired) || is && (got.Owner != "w7" || got.Note != "nightly") {
			t.Errorf("ContentionError %v", got)
		}
		check.Equal(t, "the strategy's RetryAfter", held.RetryAfter, 30*time.Second)
	})
}

func timeout(d time.Duration) func(context.Context) (context.Context, context.CancelFunc) {
	return func(ctx context.Context) (context.Context, context.CancelFunc) { return context.WithTimeout(ctx, d) }
}

// The error of a wait whose last attempt ctx cut off: earlier knowledge counts, unless there was
// another error or a long silence.
func TestCutOff(t *testing.T) {
	unknown := func(ctx context.Context, _ *server) error {
		return fmt.Errorf("%w: %w", locker.ErrUnknownOutcome, ctx.Err())
	}
	type test struct {
		known   bool // an attempt was refused before
		cause   bool // MaxWait, with its cause, in place of a deadline
		silent  bool // the attempt was under way for long
		cut     func(ctx context.Context, s *server) error
		want    []error
		wantNot []error
	}
	bubbles(t, map[string]test{
		"nothing sent": {
			known: true, cut: func(ctx context.Context, _ *server) error { return driver.NotSent(ctx.Err()) },
			want: []error{locker.ErrNotAcquired, context.DeadlineExceeded}, wantNot: []error{locker.ErrUnknownOutcome},
		},
		"with a cause": {
			known: true, cause: true,
			cut:  func(ctx context.Context, _ *server) error { return fmt.Errorf("%w: %w", ctx.Err(), context.Cause(ctx)) },
			want: []error{locker.ErrNotAcquired, locker.ErrMaxWait}, wantNot: []error{locker.ErrUnknownOutcome, context.DeadlineExceeded},
		},
		"unknown": {
			known: true, cut: unknown,
			want: []error{locker.ErrNotAcquired, context.DeadlineExceeded}, wantNot: []error{locker.ErrUnknownOutcome},
		},
		"unknown, with a cause": {
			known: true, cause: true,
			cut: func(ctx context.Context, _ *server) error {
				return fmt.Errorf("%w: %w: %w", locker.ErrUnknownOutcome, ctx.Err(), context.Cause(ctx))
			},
			want: []error{locker.ErrNotAcquired, locker.ErrMaxWait}, wantNot: []error{locker.ErrUnknownOutcome},
		},
		"unknown, nothing known": {
			cut:  unknown,
			want: []error{locker.ErrUnknownOutcome, context.DeadlineExceeded}, wantNot: []error{locker.ErrNotAcquired},
		},
		"unknown, after a long silence": {
			known: true, silent: true, cut: unknown,
			want: []error{locker.ErrUnknownOutcome, context.DeadlineExceeded}, wantNot: []error{locker.ErrNotAcquired},
		},
		"unknown, for an error besides": {
			known: true,
			cut: func(ctx context.Context, _ *server) error {
				return fmt.Errorf("%w: %w: %w", locker.ErrUnknownOutcome, ctx.Err(), errCut)
			},
			want: []error{locker.ErrUnknownOutcome, errCut, context.DeadlineExceeded}, wantNot: []error{locker.ErrNotAcquired},
		},
		"an outage besides": {
			known: true,
			cut:   func(ctx context.Context, _ *server) error { return fmt.Errorf("%w: %w", ctx.Err(), errCut) },
			want:  []error{errCut, context.DeadlineExceeded}, wantNot: []error{locker.ErrNotAcquired},
		},
		"nothing sent, nothing known": {
			cut:     func(ctx context.Context, _ *server) error { return driver.NotSent(ctx.Err()) },
			want:    []error{driver.ErrNotSent, context.DeadlineExceeded},
			wantNot: []error{locker.ErrNotAcquired, locker.ErrUnknownOutcome},
		},
		"nothing sent, nothing known, with a cause": {
			cause:   true,
			cut:     func(ctx context.Context, _ *server) error { return driver.NotSent(ctx.Err()) },
			want:    []error{driver.ErrNotSent, locker.ErrMaxWait},
			wantNot: []error{locker.ErrNotAcquired, locker.ErrUnknownOutcome},
		},
		"nothing sent, for a long time": {
			known: true, silent: true,
			cut:     func(ctx context.Context, _ *server) error { return driver.NotSent(ctx.Err()) },
			want:    []error{driver.ErrNotSent, context.DeadlineExceeded},
			wantNot: []error{locker.ErrNotAcquired, locker.ErrUnknownOutcome},
		},
		"nothing known": {
			cut:  func(ctx context.Context, _ *server) error { return ctx.Err() },
			want: []error{context.DeadlineExceeded}, wantNot: []error{locker.ErrNotAcquired},
		},
		"unknown, in another form": {
			known: true, cut: func(ctx context.Context, _ *server) error { return openError{ctx.Err()} },
			want: []error{locker.ErrNotAcquired, context.DeadlineExceeded}, wantNot: []error{locker.ErrUnknownOutcome},
		},
		"refused in the end": {
			cut:  func(_ context.Context, s *server) error { s.noPubSub = false; return s.refusal(&hold{name: name}) },
			want: []error{context.DeadlineExceeded, locker.ErrNotAcquired},
		},
		"a lasting error in the end": {
			known: true, cut: func(context.Context, *server) error { return reply("NOAUTH no") },
			wantNot: []error{context.DeadlineExceeded, locker.ErrNotAcquired},
		},
	}, func(t *testing.T, s *server, tt test) {
		inner := locker.Func(func(ctx context.Context, req locker.Request) (*locker.Lock, error) {
			if n := len(s.times()); n == 0 && tt.known {
				s.hold()
				return s.Acquire(ctx, req)
			}
			<-ctx.Done()
			return nil, &locker.OpError{Op: "acquire", Name: name, Err: tt.cut(ctx, s)}
		})
		s.noPubSub = true
		l := wrap(t, inner, retry.Config{Policy: constant(time.Second)})
		ctx, req, wait := t.Context(), locker.Request{Name: name}, 1500*ms
		if tt.silent {
			wait = 2 * time.Second
		}
		if tt.cause {
			req.MaxWait = wait
		} else {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, wait)
			defer cancel()
		}
		_, err := l.Acquire(ctx, req)
		match(t, err, tt.want, tt.wantNot)
		synctest.Wait()
		check.Equal(t, "subscriptions asked for", len(s.askings()), 0)
	})
}

// openError is a strategy's own error for an unknown outcome.
type openError struct{ error }

func (openError) Is(target error) bool { return target == locker.ErrUnknownOutcome }
func (e openError) Unwrap() error      { return e.error }

// sourced is a Locker that reports its Source.
type sourced struct{ locker.Locker }

func (sourced) Traits() lease.Traits {
	return lease.Traits{Source: locktrace.Source{Address: "192.0.2.7:6379"}}
}

// The error of a waiter without an own attempt reports what its process knows about the name.
func TestGivingUpInTheQueue(t *testing.T) {
	refused := fmt.Errorf("%w; %w", &locker.ContentionError{Name: name, Owner: "w7", Left: 10 * time.Second, Hint: lease.Hint{RetryAfter: 10 * time.Second}}, errHint)
	type test struct {
		plan    []error // of the attempts; then they hang
		head    time.Duration
		want    []error
		wantNot []error
		text    string
	}
	bubbles(t, map[string]test{
		"held": {
			plan: slices.Repeat([]error{refused}, 22),
			want: []error{locker.ErrNotAcquired},
			text: `holdfast: acquire "job": lock is held by another, owner "w7", for 9.1s at most unless renewed; ` +
				`gave up after 3s behind others of this process, without an attempt: MaxWait passed`,
		},
		"held, no answer for long": {
			plan:    []error{refused},
			wantNot: []error{locker.ErrNotAcquired, locker.ErrUnknownOutcome},
			text: `holdfast: acquire "job": no answer from 192.0.2.7:6379 in 2.9s; ` +
				`the last answer, 3s ago: lock is held by another, owner "w7", for 10s at most unless renewed; ` +
				`gave up after 3s behind others of this process, without an attempt: MaxWait passed`,
		},
		"outage": {
			plan: []error{refused, errUnknown}, want: []error{errCut},
			wantNot: []error{locker.ErrNotAcquired, locker.ErrUnknownOutcome},
			text:    `outcome is unknown: connection cut; gave up after 3s behind others`,
		},
		"held after an outage": {
			plan: append([]error{errCut}, slices.Repeat([]error{refused}, 22)...),
			want: []error{locker.ErrNotAcquired}, wantNot: []error{errCut},
		},
		"nothing": {
			wantNot: []error{locker.ErrNotAcquired},
			text:    `holdfast: acquire "job": no answer from 192.0.2.7:6379 in 3s; gave up after 3s behind others of this process, without an attempt: MaxWait passed`,
		},
		"acquired by another of this process": {plan: []error{refused, nil}, want: []error{locker.ErrNotAcquired}},
		"what cut off another is not reported": {
			plan: []error{refused}, head: 2 * time.Second,
			wantNot: []error{locker.ErrNotAcquired, context.Canceled, locker.ErrUnknownOutcome}, text: "no answer from 192.0.2.7:6379 in 2.9s",
		},
	}, func(t *testing.T, s *server, tt test) {
		free := make(chan struct{})
		inner := locker.Func(func(ctx context.Context, req locker.Request) (*locker.Lock, error) {
			if n := len(s.times()); n >= len(tt.plan) {
				select {
				case <-free:
				case <-ctx.Done():
					return nil, fmt.Errorf("%w: %w", locker.ErrUnknownOutcome, ctx.Err())
				}
			}
			return s.Acquire(ctx, req)
		})
		s.answer = func(n int, _ locker.Request) error {
			if n >= len(tt.plan) {
				return nil
			}
			return tt.plan[n]
		}
		l := wrap(t, sourced{inner}, retry.Config{Policy: constant(100 * ms)})
		ctx, cancel := context.WithCancel(t.Context())
		head, cutOff := context.WithCancel(ctx)
		if tt.head > 0 {
			time.AfterFunc(tt.head, cutOff)
		}
		s.begin(head, l, locker.Request{})
		s.begin(ctx, l, locker.Request{})
		behind := s.begin(t.Context(), l, locker.Request{MaxWait: 3 * time.Second})
		elapse(3 * time.Second)
		behind.wantError(t, 3*time.Second, append(tt.want, locker.ErrMaxWait)...)
		match(t, behind.err, nil, append(tt.wantNot, context.DeadlineExceeded))
		if !strings.Contains(behind.err.Error(), tt.text) {
			t.Errorf("text %q\nwant %q", behind.err, tt.text)
		}
		close(free)
		cutOff()
		cancel()
	})
}

// The text for an outage names the holder before it. Middleware that logs the text finds the holder, to
// hide its owner. The error does not match it: an outage is not contention.
func TestHolderBeforeAnOutageIsFound(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		s.noPubSub = true
		s.hold()
		l := wrap(t, locker.Func(func(ctx context.Context, req locker.Request) (*locker.Lock, error) {
			if len(s.times()) == 0 {
				return s.Acquire(ctx, req)
			}
			<-ctx.Done()
			return nil, fmt.Errorf("%w: %w", locker.ErrUnknownOutcome, ctx.Err())
		}), retry.Config{Policy: constant(100 * ms)})
		asked := s.begin(t.Context(), l, locker.Request{MaxWait: 5 * time.Second})
		behind := s.begin(t.Context(), l, locker.Request{MaxWait: 3 * time.Second})
		check.Advance(5 * time.Second)
		for what, err := range map[string]error{"who asked": asked.err, "who waited behind": behind.err} {
			if text := telemetry.Text(err, false); !strings.Contains(err.Error(), `owner "w7"`) || strings.Contains(text, "w7") {
				t.Errorf("%s: %v; without the owner: %s", what, err, text)
			}
			if _, refused := errors.AsType[*locker.ContentionError](err); refused || errors.Is(err, locker.ErrNotAcquired) {
				t.Errorf("%s: %v matches a refusal", what, err)
			}
		}
	})
}

// lateContext ends after its deadline, as on a busy machine.
type lateContext struct {
	context.Context //nolint:containedctx // it is one
	deadline        time.Time
}

func (c lateContext) Deadline() (time.Time, bool) { return c.deadline, true }
