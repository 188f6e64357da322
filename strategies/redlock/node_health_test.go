package redlock

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/locktrace"
)

func TestHealth(t *testing.T) {
	t.Parallel()
	const patience = time.Second
	start := time.Now()
	down := errors.New("connection refused")
	type call struct {
		at  time.Duration
		err error
	}
	for name, tt := range map[string]struct {
		calls []call
		fails bool
		since time.Duration
	}{
		"never asked":                 {},
		"the first call fails":        {[]call{{0, down}}, true, 0},
		"one failure among others":    {[]call{{0, nil}, {time.Second, down}, {time.Second, nil}, {2 * time.Second, down}}, false, 0},
		"no success for patience":     {[]call{{0, nil}, {time.Second, down}, {1001 * time.Millisecond, down}}, true, 1001 * time.Millisecond},
		"it goes on failing":          {[]call{{0, nil}, {2 * time.Second, down}, {3 * time.Second, down}}, true, 2 * time.Second},
		"it works again":              {[]call{{0, down}, {2 * time.Second, nil}}, false, 0},
		"a refusal is an answer":      {[]call{{0, down}, {2 * time.Second, &locker.ContentionError{}}}, false, 0},
		"so is a loss":                {[]call{{0, down}, {2 * time.Second, locker.ErrLost}}, false, 0},
		"a caller that left":          {[]call{{0, fmt.Errorf("%w: %w", locker.ErrUnknownOutcome, context.Canceled)}}, false, 0},
		"what the node has not":       {[]call{{0, errors.ErrUnsupported}}, false, 0},
		"an answer that did not come": {[]call{{0, locker.ErrUnknownOutcome}}, true, 0},
	} {
		var h nodeHealth
		for _, c := range tt.calls {
			h = h.after(start.Add(c.at), c.err, patience)
		}
		if (h.cause != nil) != tt.fails || tt.fails && !h.failing.Equal(start.Add(tt.since)) {
			t.Errorf("%s: cause %v since %v, want a failure: %v since %v", name, h.cause, h.failing.Sub(start), tt.fails, tt.since)
		}
	}
}

func TestNodeErrorNamesTheAddressOnce(t *testing.T) {
	t.Parallel()
	const addr = "127.0.0.1:1"
	dial := errors.New("dial tcp 127.0.0.1:1: connection refused")
	for _, tt := range []struct {
		name, address string
		err           error
		want          string
	}{
		{"", "", errUnanswered, "node 1: no answer yet"},
		{addr, addr, errUnanswered, "node 1 (127.0.0.1:1): no answer yet"},
		{addr, addr, dial, "node 1: dial tcp 127.0.0.1:1: connection refused"},
		{"west", addr, errUnanswered, "node 1 (west, 127.0.0.1:1): no answer yet"},
		{"west", addr, dial, "node 1 (west): dial tcp 127.0.0.1:1: connection refused"},
		{"west", "", errUnanswered, "node 1 (west): no answer yet"},
	} {
		e := &NodeError{Node: 1, Name: tt.name, Address: tt.address, Err: tt.err}
		check.Equal(t, "error", e.Error(), tt.want)
	}
}

// The first address learned is kept; a lease without a source hides nothing.
func TestFirstSourceIsKept(t *testing.T) {
	t.Parallel()
	n := &quorumNode{}
	for _, address := range []string{"", "first:1", "", "other:1"} {
		n.learn(locktrace.Source{Address: address})
	}
	check.Equal(t, "error, with the address learned first", n.error(errEnded).Error(), "node 0 (first:1): "+errEnded.Error())
}

func TestLoadFull(t *testing.T) {
	t.Parallel()
	const patience = time.Second
	for _, tt := range []struct {
		name string
		load nodeLoad
		want bool
	}{
		{"idle", nodeLoad{}, false},
		{"idle for long", nodeLoad{silence: time.Hour}, false},
		{"few calls, silent for long", nodeLoad{acquires: maxUnanswered - 1, unawaited: maxUnanswered - 1, silence: time.Hour}, false},
		{"many callers wait, and answers come", nodeLoad{acquires: 1000, silence: patience}, false},
		{"callers wait, and none comes", nodeLoad{acquires: maxUnanswered, silence: patience + 1}, true},
		{"many are behind, and answers come", nodeLoad{acquires: maxUnawaited, unawaited: maxUnawaited, silence: patience / 40}, false},
		{"more are behind, and answers come", nodeLoad{acquires: 320, unawaited: 10 * maxUnawaited, silence: patience / 400}, false},
		{"more are behind, and none comes", nodeLoad{acquires: 320, unawaited: 10 * maxUnawaited, silence: patience/400 + 1}, true},
		{"many are behind, and none comes", nodeLoad{acquires: maxUnawaited, unawaited: maxUnawaited, silence: patience/40 + 1}, true},
		{"some are behind, and none comes", nodeLoad{acquires: maxUnawaited, unawaited: maxUnawaited - 1, silence: patience/40 + 1}, false},
	} {
		check.Equal(t, tt.name+": full", tt.load.full(patience), tt.want)
	}
}

func TestAnswered(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		err  error
		want bool
	}{
		{nil, true},
		{&locker.OpError{Op: "acquire", Err: &locker.ContentionError{}}, true},
		{locker.ErrNotHeld, true},
		{locker.ErrLost, true}, // it was answered, too late
		{&driver.ServerError{Text: "WRONGTYPE no string"}, true},
		{fmt.Errorf("%w: no answer", locker.ErrUnknownOutcome), false},
		{driver.NotSent(errors.New("no connection was free")), false},
		{errors.New("connection refused"), false},
	} {
		check.Equal(t, fmt.Sprintf("answered(%v)", tt.err), answered(tt.err), tt.want)
	}
}

// A node's silence counts from the first call after its last answer. Without calls there is none.
func TestSilence(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := &quorumNode{quorum: &quorumHealth{size: 1}}
		begin := func() { n.beginCall(t.Context(), time.Hour) }
		end := func(err error) func() { return func() { n.endCall(t.Context(), &err, time.Hour) } }
		for _, step := range []struct {
			what string
			do   func()
			want time.Duration // a second later
		}{
			{"a call begins", begin, time.Second},
			{"another begins", begin, 2 * time.Second},
			{"one is answered", end(nil), 0},
			{"another begins", begin, time.Second},
			{"one fails", end(errNodeDown), 2 * time.Second},
			{"the last fails", end(errNodeDown), 0},
		} {
			step.do()
			check.Advance(time.Second)
			check.Equal(t, "silence after "+step.what, n.silence(time.Now()), step.want)
		}
	})
}

// A Trace gets the recovery if and only if it got the failure, whichever call notices either.
func TestNodeReportsArePaired(t *testing.T) {
	t.Parallel()
	type call struct {
		trace string
		node  int
		fails bool
	}
	a, b, none := "a", "b", ""
	type test struct {
		calls []call
		want  string
	}
	check.EachInFakeTime(t, map[string]test{
		"one Trace":                  {[]call{{a, 0, true}, {a, 0, false}}, "a: 0 failing, a: 0 recovered"},
		"nobody listens":             {[]call{{none, 0, true}, {none, 0, false}}, ""},
		"noticed without a Trace":    {[]call{{none, 0, true}, {a, 0, true}, {a, 0, false}}, "a: 0 failing, a: 0 recovered"},
		"over before a Trace":        {[]call{{none, 0, true}, {none, 0, false}, {a, 0, false}}, ""},
		"recovers at a traced call":  {[]call{{none, 0, true}, {a, 0, false}}, "a: 0 failing, a: 0 recovered"},
		"recovers without a Trace":   {[]call{{a, 0, true}, {none, 0, false}}, "a: 0 failing, a: 0 recovered"},
		"recovers at another's call": {[]call{{a, 0, true}, {b, 0, false}}, "a: 0 failing, a: 0 recovered"},
		"fails at both's calls":      {[]call{{a, 0, true}, {b, 0, true}, {b, 0, false}}, "a: 0 failing, a: 0 recovered"},
		"each fails in turn": {
			[]call{{a, 0, true}, {none, 0, false}, {b, 0, true}, {a, 0, false}},
			"a: 0 failing, a: 0 recovered, b: 0 failing, b: 0 recovered",
		},
		"two nodes": {
			[]call{{a, 0, true}, {none, 1, true}, {b, 0, false}, {b, 1, true}, {a, 1, false}},
			"a: 0 failing, a: 0 recovered, b: 1 failing, b: 1 recovered",
		},
		"fails again without a Trace": {
			[]call{{a, 0, true}, {none, 0, false}, {none, 0, true}, {none, 0, false}}, "a: 0 failing, a: 0 recovered",
		},
	}, func(t *testing.T, tt test) {
		var events []string
		record := func(trace, what string) func(context.Context, locktrace.NodeInfo) {
			return func(_ context.Context, info locktrace.NodeInfo) {
				events = append(events, fmt.Sprintf("%s: %d %s", trace, info.Node, what))
			}
		}
		shared := &quorumHealth{size: 2}
		nodes := []*quorumNode{{quorum: shared}, {quorum: shared, index: 1}}
		for _, c := range tt.calls {
			var err error
			if c.fails {
				err = errors.New("connection refused")
			}
			ctx := t.Context()
			if c.trace != none {
				ctx = locktrace.With(ctx, &locktrace.Trace{NodeFailing: record(c.trace, "failing"), NodeRecovered: record(c.trace, "recovered")})
			}
			nodes[c.node].beginCall(ctx, time.Second)
			time.Sleep(2 * time.Second) //nolint:forbidigo // fake time
			nodes[c.node].endCall(ctx, &err, time.Second)
			synctest.Wait()
		}
		check.Equal(t, "told", strings.Join(events, ", "), tt.want)
	})
}
