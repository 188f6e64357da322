package locker

import (
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
)

func TestWatchView(t *testing.T) {
	t.Parallel()
	failure, final := errors.New("connection refused"), ErrClosed
	a := State{Held: true, Owner: "a", Holds: 1, Left: time.Minute, Fence: 5}
	renewed, noted, next, readers, others := a, a, a, a, a
	renewed.Left = time.Hour
	noted.Note = "why"
	next.Fence = 6
	readers.Mode, readers.Holds = Shared, 2
	others.Mode, others.Holds, others.Owner, others.Note = Shared, 2, "b", "note"
	fewer := others
	fewer.Holds = 1
	type look struct {
		state State
		err   error
		yield bool
	}
	check.Each(t, map[string][]look{
		"free, held, free":                 {{yield: true}, {}, {state: a, yield: true}, {state: a}, {yield: true}},
		"a renewal":                        {{state: a, yield: true}, {state: renewed}},
		"another note":                     {{state: a, yield: true}, {state: noted, yield: true}},
		"another fencing token":            {{state: a, yield: true}, {state: next, yield: true}},
		"of two readers another ends last": {{state: readers, yield: true}, {state: others}, {state: fewer, yield: true}},
		"an outage":                        {{state: a, yield: true}, {err: failure, yield: true}, {err: failure}, {state: a, yield: true}, {err: failure, yield: true}},
		"an outage first":                  {{err: failure, yield: true}, {yield: true}},
		"an outage, then the last":         {{err: failure, yield: true}, {err: final, yield: true}},
	}, func(t *testing.T, looks []look) {
		var v view
		for i, l := range looks {
			if got := v.update(l.state, l.err); got != l.yield {
				t.Errorf("look %d: yields %t, want %t", i, got, l.yield)
			}
			if l.err == nil && v.state != l.state {
				t.Errorf("look %d: knows %+v, want %+v", i, v.state, l.state)
			}
		}
	})
}

func TestUntilPoll(t *testing.T) {
	t.Parallel()
	for what, tc := range map[string]struct {
		state    State
		interval time.Duration
		want     time.Duration
	}{
		"free":                {State{}, time.Second, time.Second},
		"held for long":       {State{Held: true, Left: time.Minute}, time.Second, time.Second},
		"held for a moment":   {State{Held: true, Left: 20 * time.Millisecond}, time.Second, 21 * time.Millisecond},
		"held without an end": {State{Held: true}, time.Second, time.Second},
		"held for no time":    {State{Held: true, Left: time.Microsecond}, time.Second, watchPause},
		"a short interval":    {State{}, time.Nanosecond, watchPause},
	} {
		check.Equal(t, what, untilPoll(tc.state, tc.interval), tc.want)
	}
}
