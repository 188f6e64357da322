package retry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
)

func equal[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

func TestReplaces(t *testing.T) {
	t.Parallel()
	held := outcome{held: &locker.ContentionError{}, at: time.Now()}
	failed := outcome{err: io.EOF, at: time.Now()}
	silent := outcome{err: &silenceError{}, at: time.Now()}
	open := func(err error) error { return fmt.Errorf("%w: %w", locker.ErrUnknownOutcome, err) }
	end, why := context.DeadlineExceeded, locker.ErrMaxWait
	tests := []struct {
		name  string
		known outcome
		err   error
		want  bool
	}{
		{"nothing was executed", held, end, false},
		{"nothing was executed, after a silence", silent, end, false},
		{"nothing was executed, nothing known", outcome{}, fmt.Errorf("%w: %w", end, why), false},
		{"nothing was sent", held, driver.NotSent(end), false},
		{"nothing was sent, after a silence", silent, driver.NotSent(end), true},
		{"nothing was sent, after an error", failed, driver.NotSent(end), false},
		{"nothing was sent, nothing known", outcome{}, driver.NotSent(end), true},
		{"unknown", held, open(fmt.Errorf("%w: %w", end, why)), false},
		{"unknown, by the client's own timer", held, open(os.ErrDeadlineExceeded), false},
		{"unknown, after a silence", silent, open(end), true},
		{"unknown, nothing known", outcome{}, open(end), true},
		{"unknown, after an error", failed, open(end), true},
		{"another error", held, io.EOF, true},
		{"another error besides", held, open(errors.Join(end, io.EOF)), true},
	}
	for _, tt := range tests {
		equal(t, tt.name, replaces(tt.known, tt.err, end, why), tt.want)
	}
}

func TestTiming(t *testing.T) {
	t.Parallel()
	now := time.Now()
	once := timing{}.add(2 * time.Second)
	twice := once.add(10 * time.Millisecond).add(time.Second)
	tests := []struct {
		name  string
		t     timing
		left  time.Duration // until the end; 0: there is none
		times int
		want  bool
	}{
		{"nothing known", timing{}, 1, 1, false},
		{"one attempt may have been slow", once, time.Millisecond, 1, false},
		{"no end", twice, 0, 1, false},
		{"time for one", twice, 10 * time.Millisecond, 1, false},
		{"no time for one", twice, 9 * time.Millisecond, 1, true},
		{"no time for two", twice, 19 * time.Millisecond, 2, true},
	}
	for _, tt := range tests {
		var end time.Time
		if tt.left > 0 {
			end = now.Add(tt.left)
		}
		equal(t, tt.name, tt.t.tooLate(now, end, tt.times), tt.want)
	}
	outages := []struct {
		name          string
		t             timing
		silence, want time.Duration
	}{
		{"no silence", twice, 0, 0},
		{"just under a second", twice, time.Second - 1, 0},
		{"a second", twice, time.Second, time.Second},
		{"twice the fastest attempt, nearly", once, 4*time.Second - 1, 0},
		{"twice the fastest attempt", once, 4 * time.Second, 4 * time.Second},
	}
	for _, tt := range outages {
		equal(t, "outage, "+tt.name, tt.t.outage(tt.silence), tt.want)
	}
}

func TestSilence(t *testing.T) {
	t.Parallel()
	const begin, end = true, false
	type event struct {
		at    time.Duration
		begin bool
	}
	tests := []struct {
		name    string
		fastest time.Duration
		events  []event
		want    time.Duration // after 10 s
	}{
		{"nobody asks", 0, nil, 0},
		{"one in flight", 0, []event{{3 * time.Second, begin}}, 7 * time.Second},
		{"one cut off", 0, []event{{0, begin}, {3 * time.Second, end}}, 3 * time.Second},
		{"one after the other", 0, []event{{0, begin}, {2 * time.Second, end}, {5 * time.Second, begin}, {6 * time.Second, end}, {9 * time.Second, begin}}, 4 * time.Second},
		{"two at once count once", 0, []event{{0, begin}, {time.Second, begin}, {2 * time.Second, end}, {4 * time.Second, end}}, 4 * time.Second},
		{"one of two in flight", 0, []event{{0, begin}, {time.Second, begin}, {2 * time.Second, end}}, 10 * time.Second},
		{"no answer was due", time.Second, []event{{0, begin}, {time.Second - 1, end}}, 0},
		{"an answer was due", time.Second, []event{{0, begin}, {time.Second, end}}, time.Second},
	}
	for _, tt := range tests {
		start := time.Now()
		var s silence
		for _, e := range tt.events {
			if e.begin {
				s = s.begin(start.Add(e.at))
			} else {
				s = s.end(start.Add(e.at), tt.fastest)
			}
		}
		equal(t, tt.name, s.length(start.Add(10*time.Second)), tt.want)
	}
}

// The outcome that a request reports, by its attempts and the error at the end.
func TestHistoryReport(t *testing.T) {
	t.Parallel()
	refused := &locker.ContentionError{}
	unknown, notSent := fmt.Errorf("%w: %w", locker.ErrUnknownOutcome, io.EOF), driver.NotSent(io.EOF)
	both := fmt.Errorf("%w: %w", locker.ErrUnknownOutcome, notSent)
	own := func(err error) outcome { return outcome{err: err} }
	others := func(err error) outcome { return outcome{err: err, others: true} }
	tests := []struct {
		name             string
		attempts         []error
		o                outcome
		unknown, notSent bool // what is matched
	}{
		{"unknown", []error{unknown}, own(unknown), true, false},
		{"unknown, the last send never left", []error{both}, own(both), true, false},
		{"unknown; another was not sent", []error{unknown}, others(notSent), true, false},
		{"unknown; another is unknown", []error{unknown}, others(unknown), true, false},
		{"unknown; another failed", []error{unknown}, others(io.EOF), true, false},
		{"unknown; silence", []error{unknown}, others(&silenceError{}), true, false},
		{"unknown; held by another", []error{unknown}, outcome{held: refused, others: true}, false, false},
		{"unknown, then not sent", []error{unknown, notSent}, own(notSent), true, false},
		{"unknown, then failed", []error{unknown, io.EOF}, own(io.EOF), true, false},
		{"unknown, then refused; another was not sent", []error{unknown, refused}, others(notSent), false, false},
		{"unknown, then refused, then not sent", []error{unknown, refused, notSent}, own(notSent), false, true},
		{"refused, then not sent", []error{refused, notSent}, own(notSent), false, true},
		{"refused, then unknown; another failed", []error{refused, unknown}, others(io.EOF), true, false},
		{"failed; another was not sent", []error{io.EOF}, others(notSent), false, false},
		{"not sent", []error{notSent}, own(notSent), false, true},
		{"not sent; another was not sent", []error{notSent}, others(notSent), false, true},
		{"not sent; another is unknown", []error{notSent}, others(unknown), false, false},
		{"no attempt; another was not sent", nil, others(notSent), false, true},
		{"no attempt; another is unknown", nil, others(unknown), false, false},
		{"no attempt; another is unknown, the last send never left", nil, others(both), false, true},
	}
	for _, tt := range tests {
		var h history
		for _, err := range tt.attempts {
			h = h.add(err, errors.Is(err, locker.ErrNotAcquired), time.Now())
		}
		err := h.report(tt.o, time.Now())
		equal(t, tt.name+": matches ErrUnknownOutcome", errors.Is(err, locker.ErrUnknownOutcome), tt.unknown)
		equal(t, tt.name+": matches ErrNotSent", errors.Is(err, driver.ErrNotSent), tt.notSent)
		if tt.o.err != nil && (errors.Is(tt.o.err, io.EOF) != errors.Is(err, io.EOF) || err.Error() != tt.o.err.Error()) {
			t.Errorf("%s: error %v, want %v", tt.name, err, tt.o.err)
		}
	}
	if err := (history{unknown: true}).report(outcome{}, time.Now()); err != nil {
		t.Errorf("error %v where nothing is known", err)
	}
}
