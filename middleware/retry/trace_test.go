package retry_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/locker/locktrace"
	"github.com/holdfast-go/holdfast/middleware/retry"
)

// log keeps the reports of a Trace.
type log struct {
	mu     sync.Mutex
	events []string
}

func (l *log) addf(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = append(l.events, fmt.Sprintf(format, args...))
}

func (l *log) trace(ctx context.Context, start time.Time) context.Context {
	return locktrace.With(ctx, &locktrace.Trace{
		Waiting: func(_ context.Context, i locktrace.WaitingInfo) {
			why := "in the queue"
			switch {
			case errors.Is(i.Err, locker.ErrNotAcquired):
				why = "held"
			case errors.Is(i.Err, errCut):
				why = "cut"
			}
			l.addf("%v: %s %v waits, %s, %d ahead, subscribed %v, for %v", time.Since(start), i.Name, i.Mode, why, i.Queued, i.Subscribed, i.For)
		},
		Woken: func(_ context.Context, i locktrace.WokenInfo) {
			l.addf("%v: %s %v woken by %s after %v", time.Since(start), i.Name, i.Mode, i.By, i.Waited)
		},
	})
}

// Every wait is reported with its reason, and its end with the cause, unless the waiter gave up.
func TestTrace(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		s.ask = late(ms) // a begins to wait before
		s.answer = func(n int, _ locker.Request) error {
			switch n {
			case 2:
				return &locker.ContentionError{Name: name, Hint: lease.Hint{RetryAfter: 100 * ms, Channel: driver.NewChannel(s, name+":wake")}}
			case 3:
				return errCut
			}
			return nil
		}
		h := s.hold()
		l := wrap(t, s, retry.Config{Policy: constant(2 * time.Second)})
		var logs [3]log
		a := s.begin(logs[0].trace(t.Context(), s.start), l, locker.Request{})
		b := s.begin(logs[1].trace(t.Context(), s.start), l, locker.Request{Mode: locker.Shared})
		c := s.begin(logs[2].trace(t.Context(), s.start), l, locker.Request{MaxWait: 5 * time.Second})
		elapse(4500 * ms)
		s.free(h)
		a.wantLock(t, 4500*ms)
		elapse(time.Second)
		c.wantError(t, 5*time.Second, locker.ErrMaxWait)
		check.OK(t, a.lock.Release(t.Context()))
		b.wantLock(t, 5500*ms)
		for i, want := range [][]string{
			{
				"0s: job exclusive waits, held, 0 ahead, subscribed false, for 2s",
				"1ms: job exclusive woken by subscription after 1ms",
				"1ms: job exclusive waits, held, 0 ahead, subscribed true, for 1.999s",
				"2s: job exclusive woken by backoff after 1.999s",
				"2s: job exclusive waits, held, 0 ahead, subscribed true, for 101ms",
				"2.101s: job exclusive woken by lease end after 101ms",
				"2.101s: job exclusive waits, cut, 0 ahead, subscribed true, for 1.899s",
				"4s: job exclusive woken by backoff after 1.899s",
				"4s: job exclusive waits, held, 0 ahead, subscribed true, for 2s",
				"4.5s: job exclusive woken by release after 500ms",
			},
			{
				"0s: job shared waits, in the queue, 1 ahead, subscribed false, for 0s",
				"4.5s: job shared woken by turn after 4.5s",
				"4.5s: job shared waits, held, 0 ahead, subscribed true, for 2s",
				"5.5s: job shared woken by release after 1s",
			},
			{"0s: job exclusive waits, in the queue, 2 ahead, subscribed false, for 0s"},
		} {
			check.EqualSlices(t, fmt.Sprint("events of waiter ", i), logs[i].events, want)
		}
	})
}
