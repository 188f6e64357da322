package retry_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/middleware/retry"
)

// If a client's own timer fires before the ctx ends, the waiters behind it neither see an outage
// nor wait for the ctx.
func TestClientNoticesDeadlineFirst(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		inner := locker.Func(func(ctx context.Context, req locker.Request) (*locker.Lock, error) {
			if req.Note == "late" {
				elapse(500 * ms)
				return nil, fmt.Errorf("%w: %w", locker.ErrUnknownOutcome, os.ErrDeadlineExceeded)
			}
			return s.Acquire(ctx, req)
		})
		l := wrap(t, inner, retry.Config{Policy: constant(time.Second)})
		s.latency = time.Second
		late, cancel := context.WithTimeout(t.Context(), 510*ms)
		defer cancel()
		leader := s.begin(lateContext{late, s.start.Add(500 * ms)}, l, locker.Request{Note: "late"})
		next := s.begin(t.Context(), l, locker.Request{})
		behind := s.begin(t.Context(), l, locker.Request{MaxWait: 505 * ms})
		elapse(2 * time.Second)
		leader.wantError(t, 510*ms, context.DeadlineExceeded, locker.ErrUnknownOutcome)
		next.wantLock(t, 1500*ms)
		behind.wantError(t, 505*ms, locker.ErrMaxWait, locker.ErrNotAcquired)
	})
}

// A request's own unknown outcome stays unknown, whatever others in the process find out.
func TestOwnUnknownOutcome(t *testing.T) {
	dial := errors.New("connection refused")
	type test struct {
		others error // nil: held by another
		want   []error
		text   string
	}
	bubbles(t, map[string]test{
		"another is refused, nobody knows by whom": {&locker.ContentionError{Name: name}, []error{locker.ErrUnknownOutcome, errCut}, "outcome is unknown: connection cut; gave up after 2s"},
		"another was not sent":                     {driver.NotSent(dial), []error{locker.ErrUnknownOutcome, dial}, "connection refused; the outcome of an earlier attempt is unknown; gave up"},
		"another is unknown":                       {fmt.Errorf("%w: %w", locker.ErrUnknownOutcome, dial), []error{locker.ErrUnknownOutcome, dial}, "outcome is unknown: connection refused; gave up"},
		"another is refused":                       {nil, []error{locker.ErrNotAcquired}, "held by another"},
		"another is silent":                        {errSilent, []error{locker.ErrUnknownOutcome, errCut}, "outcome is unknown: connection cut; gave up after 2s"},
	}, func(t *testing.T, s *server, tt test) {
		s.noPubSub = true
		attempts := 0
		inner := locker.Func(func(ctx context.Context, req locker.Request) (*locker.Lock, error) {
			attempts++
			switch {
			case attempts == 1:
				return nil, &locker.ContentionError{Name: name}
			case req.Mode == locker.Exclusive:
				return nil, errUnknown
			case tt.others == nil:
				s.hold()
				return s.Acquire(ctx, req)
			case tt.others == errSilent: //nolint:errorlint // the test's own mark
				<-ctx.Done()
				return nil, ctx.Err()
			default:
				return nil, tt.others
			}
		})
		l := wrap(t, ordering{inner}, retry.Config{Policy: constant(1100 * ms)}) // both modes have a first waiter
		a := s.begin(t.Context(), l, locker.Request{MaxWait: 2 * time.Second})
		elapse(1200 * ms)
		s.begin(t.Context(), l, locker.Request{Mode: locker.Shared, MaxWait: 5 * time.Second})
		elapse(10 * time.Second)
		a.wantError(t, 2*time.Second, append(tt.want, locker.ErrMaxWait)...)
		match(t, a.err, nil, []error{driver.ErrNotSent})
		if driver.NotExecuted(a.err) || !strings.Contains(a.err.Error(), tt.text) {
			t.Errorf("not executed: %t, text %q\nwant %q", driver.NotExecuted(a.err), a.err, tt.text)
		}
	})
}

var errSilent = errors.New("no answer")

// A caller without a reply within its short deadline is not an outage for a waiter for a lease's
// end. Many such callers in a row are none either: no reply was due.
func TestImpatientCallers(t *testing.T) {
	bubbles(t, map[string]int{"1": 1, "100": 100}, func(t *testing.T, s *server, callers int) {
		s.noPubSub, s.latency, s.lease = true, 30*ms, time.Minute
		s.hold()
		l := wrap(t, reentering{s}, retry.Config{Policy: constant(time.Minute)})
		patient := s.begin(t.Context(), l, locker.Request{MaxWait: 4 * time.Second})
		elapse(500 * ms)
		for range callers {
			impatient := s.begin(t.Context(), l, locker.Request{Owner: holder, MaxWait: 20 * ms})
			elapse(30 * ms)
			if synctest.Wait(); !impatient.done || impatient.err == nil {
				t.Errorf("an impatient caller returned: %t, with %v", impatient.done, impatient.err)
			}
		}
		elapse(4 * time.Second)
		check.Equal(t, "attempts", len(s.times()), 1+callers)
		patient.wantError(t, 4*time.Second, locker.ErrNotAcquired)
	})
}

// A server silent for a second is an outage, even if no single attempt lasts that long.
func TestSilenceBehindSuccessiveLeaders(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		s.noPubSub = true
		s.hold()
		inner := locker.Func(func(ctx context.Context, req locker.Request) (*locker.Lock, error) {
			if len(s.times()) == 0 {
				return s.Acquire(ctx, req)
			}
			<-ctx.Done()
			return nil, fmt.Errorf("%w: %w", locker.ErrUnknownOutcome, ctx.Err())
		})
		l := wrap(t, inner, retry.Config{Policy: constant(100 * ms)})
		waiters := []*result{s.begin(t.Context(), l, locker.Request{MaxWait: 400 * ms})}
		for range 20 { // each one leads, and has an attempt in flight, for 200 ms
			elapse(200 * ms)
			waiters = append(waiters, s.begin(t.Context(), l, locker.Request{MaxWait: 400 * ms}))
		}
		check.Advance(time.Second)
		for i, r := range waiters {
			if want := i <= 3; !r.done || errors.Is(r.err, locker.ErrNotAcquired) != want {
				t.Errorf("waiter %d, until %v: contention: %t, %v", i, r.at, !want, r.err)
			}
		}
	})
}

// An unanswered attempt is an outage for the waiters behind it, even if another attempt was
// answered after it began.
func TestSilenceOfAnAttemptBegunBefore(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		s.noPubSub = true
		s.hold()
		l := wrap(t, reentering{locker.Func(func(ctx context.Context, req locker.Request) (*locker.Lock, error) {
			if req.Note == "stuck" && len(s.times()) > 0 {
				<-ctx.Done()
				return nil, fmt.Errorf("%w: %w", locker.ErrUnknownOutcome, ctx.Err())
			}
			return s.Acquire(ctx, req)
		})}, retry.Config{})
		ctx, cancel := context.WithCancel(t.Context())
		s.begin(ctx, l, locker.Request{Note: "stuck"})
		elapse(10 * ms)
		behind := s.begin(t.Context(), l, locker.Request{Owner: holder, MaxWait: 10 * time.Second})
		check.Advance(20 * time.Second)
		behind.wantError(t, 10*time.Second+10*ms, locker.ErrMaxWait)
		match(t, behind.err, nil, []error{locker.ErrNotAcquired})
		cancel()
	})
}

// Permanent errors of the server are answers: there is no silence.
func TestPermanentErrorsAreAnswers(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		s.answer = func(int, locker.Request) error {
			elapse(10 * ms)
			return &driver.ServerError{Text: "WRONGTYPE x"}
		}
		l := wrap(t, s, retry.Config{})
		for range 200 {
			s.begin(t.Context(), l, locker.Request{})
		}
		last := s.begin(t.Context(), l, locker.Request{MaxWait: 1500 * ms})
		elapse(3 * time.Second)
		last.wantError(t, 1500*ms, locker.ErrMaxWait)
		if strings.Contains(last.err.Error(), "no answer") {
			t.Error(last.err)
		}
	})
}
