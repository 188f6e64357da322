package history_test

import (
	"context"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lockertest"
	"github.com/holdfast-go/holdfast/locker/locktrace"
	"github.com/holdfast-go/holdfast/reliability/history"
)

// Every call is recorded at its begin and its end, with the request and the answer.
func TestRecorder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := lockertest.New()
		var got []history.Event
		rec := history.NewRecorder(time.Now(), func(e history.Event) { got = append(got, e) })
		c := rec.Client(7)
		h := locker.Must(c.Acquire(t.Context(), l, locker.Request{Name: "n", TTL: time.Second, Fenced: true, Owner: "o"}))
		if len(got) != 2 || got[0].ID != got[1].ID || got[0].Outcome != history.Pending || got[1].Outcome != history.OK {
			t.Fatalf("recorded %+v", got)
		}
		e := got[1]
		if e.Client != 7 || e.Name != "n" || e.Owner != "o" || e.TTL != time.Second || e.Fence != h.Fence() || e.Hold != e.ID ||
			e.Deadline != rec.At(h.Deadline()) {
			t.Errorf("acquire: %+v", e)
		}
		check.Equal(t, "held", h.Held(), true)
		time.Sleep(time.Until(h.Deadline()) - 1) //nolint:forbidigo // the clock is a fake one
		check.Equal(t, "held just before the deadline", h.Held(), true)
		if e := got[len(got)-1]; e.Kind != history.Held || e.Return > e.Deadline {
			t.Errorf("held: %+v", e)
		}
		time.Sleep(time.Nanosecond) //nolint:forbidigo // the clock is a fake one
		if n := len(got); h.Held() || len(got) != n {
			t.Error("held at the deadline")
		}
		check.Is(t, h.Release(t.Context()), locker.ErrLost)
		if e := got[len(got)-1]; e.Kind != history.Release || e.Outcome != history.Lost || e.Error == "" || e.Hold != got[1].Hold {
			t.Errorf("release: %+v", e)
		}
		if res := history.Check(history.Settle(got, rec.Now()), history.Rules{Model: history.Exclusive}, 0); res.Verdict != history.Kept || res.Operations != 4 {
			t.Errorf("%+v", res)
		}
	})
}

// An attempt's report is recorded of its acquire: an unknown outcome, and more than one command.
// The unknown outcome of one node of a quorum is not: the quorum's own attempt is reported beside
// it.
func TestAttemptsAreRecorded(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		attempt           locktrace.AttemptInfo
		won, open, resent bool
	}{
		"an unknown outcome":    {attempt: locktrace.AttemptInfo{Err: locker.ErrUnknownOutcome}, open: true},
		"a refusal":             {attempt: locktrace.AttemptInfo{Err: locker.ErrNotAcquired}},
		"one command":           {attempt: locktrace.AttemptInfo{Sends: 1}},
		"two commands":          {attempt: locktrace.AttemptInfo{Sends: 2}, resent: true},
		"the attempt of a node": {attempt: locktrace.AttemptInfo{AtNode: true, Err: locker.ErrUnknownOutcome}, won: true},
	} {
		rec := history.NewRecorder(time.Now(), nil)
		l := locker.Func(func(ctx context.Context, req locker.Request) (*locker.Lock, error) {
			c.attempt.Name = req.Name
			locktrace.From(ctx).Attempt(ctx, c.attempt)
			if c.won {
				return lockertest.New().Acquire(ctx, req)
			}
			return nil, locker.ErrNotAcquired
		})
		_, _ = rec.Client(0).Acquire(t.Context(), l, locker.Request{Name: "n", TTL: time.Second})
		want := history.Refused
		if c.won {
			want = history.OK
		}
		events := rec.Events()
		if e := events[len(events)-1]; e.Outcome != want || e.Open != c.open || e.Resent != c.resent {
			t.Errorf("%s: %+v", name, e)
		}
	}
}

func TestOutcomeOf(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err  error
		want history.Outcome
	}{
		{nil, history.OK},
		{&locker.ContentionError{}, history.Refused},
		{locker.ErrLost, history.Lost},
		{locker.ErrReleased, history.Lost},
		{locker.ErrUnknownOutcome, history.Unsettled},
		{context.DeadlineExceeded, history.Unsettled},
	} {
		check.Equal(t, fmt.Sprint(c.err), history.OutcomeOf(c.err), c.want)
	}
}

// A dead client's unfinished calls end unsettled, and its hold is left to expire.
func TestSettle(t *testing.T) {
	t.Parallel()
	s := begin().acquire("a", 0, 2).acquire("b", 5, 0, pending)
	began := s.events[0] // the record of the call's begin
	began.Outcome, began.Return = history.Pending, 0
	got := history.Settle(append([]history.Event{began}, s.events...), 50)
	if len(got) != 3 || got[0] != s.events[0] || got[1].Outcome != history.Unsettled || got[1].Return != 50 || got[2].Kind != history.Abandon || got[2].Hold != "a" || got[2].Call != 50 {
		t.Errorf("%+v", got)
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	split := history.Names([]history.Event{{ID: "1", Name: "a"}, {ID: "2", Name: "b"}, {ID: "3", Kind: history.Lose}})
	if len(split) != 2 || len(split["a"]) != 2 || len(split["b"]) != 2 || split["a"][1].ID != "3" {
		t.Errorf("%+v", split)
	}
}

// A violation is written with its picture, and read back it is one still.
func TestSave(t *testing.T) {
	t.Parallel()
	s := begin().acquire("a", 0, 2).acquire("b", 5, 6).lose(500, 501)
	events := history.Settle(s.events, 50)
	rules := history.Rules{Model: history.Exclusive, Linger: 9}
	res := history.Check(events, rules, time.Minute)
	paths, err := res.Save(t.TempDir())
	if err != nil || len(paths) != 2 {
		t.Fatalf("%v: %v", paths, err)
	}
	page, err := os.ReadFile(paths[1])
	if err != nil || !strings.Contains(string(page), "acquire #1") {
		t.Errorf("the picture shows no second acquire: %v", err)
	}
	back, backRules, err := history.Load(paths[0])
	if err != nil || !reflect.DeepEqual(back, events) || backRules != rules {
		t.Fatalf("%+v, %+v, %v", back, backRules, err)
	}
	check.Equal(t, "verdict", history.Check(back, backRules, time.Minute).Verdict, history.Violation)
}
