package retry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
)

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
		check.Equal(t, tt.name, replaces(tt.known, tt.err, end, why), tt.want)
	}
}

func TestTooLate(t *testing.T) {
	t.Parallel()
	now := time.Now()
	once := answers{refusals: 1, fastest: 2 * time.Second}
	twice := answers{refusals: 2, fastest: 10 * time.Millisecond}
	tests := []struct {
		name  string
		a     answers
		left  time.Duration // until the end; 0: there is none
		times int
		want  bool
	}{
		{"nothing known", answers{}, 1, 1, false},
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
		check.Equal(t, tt.name, tt.a.tooLate(now, end, tt.times), tt.want)
	}
}

// For how long a queue reports at 10 s that no attempt was answered.
func TestOutage(t *testing.T) {
	t.Parallel()
	const begin, cutOff, answered, refused = "begin", "cut off", "answered", "refused"
	const s = time.Second
	type event struct {
		at   time.Duration
		what string
	}
	tests := []struct {
		name    string
		fastest time.Duration
		events  []event
		want    time.Duration
	}{
		{"nobody asks", 0, nil, 0},
		{"one in flight", 0, []event{{3 * s, begin}}, 7 * s},
		{"just under a second", 0, []event{{9*s + 1, begin}}, 0},
		{"a second", 0, []event{{9 * s, begin}}, s},
		{"twice the fastest attempt, nearly", 2 * s, []event{{6*s + 1, begin}}, 0},
		{"twice the fastest attempt", 2 * s, []event{{6 * s, begin}}, 4 * s},
		{"one cut off", 0, []event{{0, begin}, {3 * s, cutOff}}, 3 * s},
		{"one after the other", 0, []event{{0, begin}, {2 * s, cutOff}, {5 * s, begin}, {6 * s, cutOff}, {9 * s, begin}}, 4 * s},
		{"two at once count once", 0, []event{{0, begin}, {s, begin}, {2 * s, cutOff}, {4 * s, cutOff}}, 4 * s},
		{"one of two in flight", 0, []event{{0, begin}, {s, begin}, {2 * s, cutOff}}, 10 * s},
		{"no answer was due", 2 * s, []event{{0, begin}, {2*s - 1, cutOff}, {3 * s, begin}, {6 * s, cutOff}}, 0},
		{"an answer was due", 2 * s, []event{{0, begin}, {2 * s, cutOff}, {3 * s, begin}, {6 * s, cutOff}}, 5 * s},
		{"an answer to one of two", 0, []event{{0, begin}, {s, begin}, {2 * s, answered}}, 8 * s},
		{"an answer to all", 0, []event{{0, begin}, {2 * s, answered}}, 0},
	}
	for _, tt := range tests {
		start := time.Now()
		a := answers{fastest: tt.fastest}
		var asking []*waiter
		for _, e := range tt.events {
			at := start.Add(e.at)
			switch e.what {
			case begin:
				asking = append(asking, &waiter{attempt: inTurn})
				a.begin(at)
				continue
			case cutOff:
				a.cutOff(asking[0], at)
			case answered:
				a.answered(asking[0], at)
			}
			asking = asking[1:]
		}
		now := start.Add(10 * s)
		check.Equal(t, tt.name, a.outage(outcome{}, now), tt.want)
		check.Equal(t, tt.name+", known by an error", a.outage(outcome{err: io.EOF}, now), 0)
	}
}

func TestNextStep(t *testing.T) {
	t.Parallel()
	now := time.Now()
	slow := answers{latest: outcome{held: &locker.ContentionError{}}, refusals: 2, fastest: time.Second}
	tests := []struct {
		name  string
		v     view
		due   bool
		left  time.Duration // until the end; 0: there is none
		want  step
		until time.Duration
	}{
		{"a leader without a reason", view{leads: true}, false, 0, stay, 0},
		{"a leader with a reason", view{leads: true}, true, 0, send, 0},
		{"a leader, while another process has its turn", view{leads: true, quietUntil: now.Add(1)}, true, 0, stay, 1},
		{"a leader, after that", view{leads: true, quietUntil: now}, true, 0, send, 0},
		{"a leader whose owner holds it", view{leads: true, mayReenter: true}, false, 0, stay, 0},
		{"one behind", view{}, true, 0, stay, 0},
		{"one behind whose owner holds it", view{mayReenter: true}, false, 0, sendEarly, 0},
		{"a reader after another", view{admitted: true}, false, 0, send, 0},
		{"a reader, while readers are refused", view{admitted: true, onlyLeaderShares: true}, true, 0, stay, 0},
		{"such a reader whose owner holds it", view{admitted: true, onlyLeaderShares: true, mayReenter: true}, true, 0, sendEarly, 0},
		{"no time for an attempt", view{leads: true, answers: slow}, true, time.Second - 1, outOfTime, 0},
		{"time for an attempt", view{leads: true, answers: slow}, true, time.Second, send, 0},
		{"no time for an attempt, but no reason", view{answers: slow}, true, 1, stay, 0},
		{"no time, after an error", view{leads: true, answers: answers{refusals: 2, fastest: time.Second}}, true, 1, send, 0},
		{"time is over", view{leads: true}, true, -1, outOfTime, 0},
	}
	for _, tt := range tests {
		var end, want time.Time
		if tt.left != 0 {
			end = now.Add(tt.left)
		}
		if tt.until != 0 {
			want = now.Add(tt.until)
		}
		got, until := tt.v.nextStep(now, tt.due, end)
		check.Equal(t, tt.name, got, tt.want)
		check.Equal(t, tt.name+", until", until, want)
	}
}

// Which outcome a waiter reports: its own, the queue's, or neither.
func TestLatest(t *testing.T) {
	t.Parallel()
	now := time.Now()
	refusal := func(owner string, ago time.Duration) outcome {
		return outcome{held: &locker.ContentionError{Owner: owner}, at: now.Add(-ago)}
	}
	unknown := history{unknownSince: now.Add(-time.Minute)}
	const own, queue, held, none = "own", "the queue's", "held by those ahead", "none"
	tests := []struct {
		name  string
		v     view
		own   outcome
		h     history
		ahead int
		want  string
	}{
		{"nothing is known, it leads", view{leads: true}, outcome{}, history{}, 1, none},
		{"nothing is known, it entered first", view{}, outcome{}, history{}, 0, none},
		{"nothing is known, others are ahead", view{}, outcome{}, history{}, 1, held},
		{"nothing is known, a reader that may try", view{admitted: true}, outcome{}, history{}, 1, none},
		{"nothing is known, its owner is ahead", view{ownerQueued: true}, outcome{}, history{}, 1, none},
		{"nothing is known but that its attempt is open", view{}, outcome{}, unknown, 1, none},
		{"the queue's is later", view{answers: answers{latest: refusal("", 1)}}, refusal("", 2), history{}, 0, queue},
		{"its own is later", view{answers: answers{latest: refusal("", 2)}}, refusal("", 1), history{}, 0, own},
		{"its own owner holds a reentrant lock", view{request: request{owner: "me"}, reenters: true, answers: answers{latest: refusal("me", 1)}}, refusal("", 2), history{}, 0, own},
		{"its own owner holds another lock", view{request: request{owner: "me"}, answers: answers{latest: refusal("me", 1)}}, refusal("", 2), history{}, 0, queue},
		{"its open attempt may hold it", view{answers: answers{latest: refusal("", 1)}}, refusal("", 2), unknown, 0, own},
		{"its open attempt does not hold it", view{answers: answers{latest: refusal("you", 1)}}, refusal("", 2), unknown, 0, queue},
		{"its attempt is open since later", view{answers: answers{latest: refusal("", 1)}}, refusal("", 2), history{unknownSince: now}, 0, queue},
	}
	for _, tt := range tests {
		got := none
		switch o := tt.v.latest(tt.own, tt.h, tt.ahead, now); {
		case o.assumed:
			got = held
		case o == tt.v.answers.latest && o != (outcome{}):
			got = queue
		case o != (outcome{}):
			got = own
		}
		check.Equal(t, tt.name, got, tt.want)
	}
}

// For whom a release leaves the lock, and until when leaders pause, by the age of a turn.
func TestTurn(t *testing.T) {
	t.Parallel()
	now := time.Now()
	const ms = time.Millisecond
	tests := []struct {
		name           string
		others         bool
		age            time.Duration
		number         int // of the waiter; 3 entered before the turn began
		serves, yields bool
	}{
		{"a new turn", false, 0, 4, true, false},
		{"after shortTurn, one that came later", false, ms, 4, false, false},
		{"after shortTurn, one that waited", false, ms, 3, true, false},
		{"after longTurn", false, 3 * ms, 3, false, false},
		{"another process", true, 0, 3, false, true},
		{"another process, after minYield", true, ms, 3, false, false},
	}
	for _, tt := range tests {
		turn := turn{began: now.Add(-tt.age), last: 3}
		if tt.others {
			turn.last = 0
		}
		check.Equal(t, tt.name+": serves", turn.serves(&waiter{number: tt.number}, now), tt.serves)
		check.Equal(t, tt.name+": yields", turn.yields(now), tt.yields)
		heldHere, otherwise := turn.began.Add(longTurn+turnSlack), time.Time{}
		if tt.others {
			heldHere, otherwise = turn.began.Add(minYield), turn.began.Add(minYield)
		}
		check.Equal(t, tt.name+": quiet while it holds the lock", turn.quietUntil(true), heldHere)
		check.Equal(t, tt.name+": quiet otherwise", turn.quietUntil(false), otherwise)
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
		unknown, notSent bool // the matched errors
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
		check.Equal(t, tt.name+": matches ErrUnknownOutcome", errors.Is(err, locker.ErrUnknownOutcome), tt.unknown)
		check.Equal(t, tt.name+": matches ErrNotSent", errors.Is(err, driver.ErrNotSent), tt.notSent)
		if tt.o.err != nil && (errors.Is(tt.o.err, io.EOF) != errors.Is(err, io.EOF) || err.Error() != tt.o.err.Error()) {
			t.Errorf("%s: error %v, want %v", tt.name, err, tt.o.err)
		}
	}
	if err := (history{unknownSince: time.Now()}).report(outcome{}, time.Now()); err != nil {
		t.Errorf("error %v where nothing is known", err)
	}
}
