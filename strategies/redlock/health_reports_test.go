package redlock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker/locktrace"
)

// reported records what is reported to Traces, as a gauge per Trace would.
type reported struct {
	t       *testing.T
	events  []string
	failing map[string]bool // by Trace and node
}

// ctx returns a context with the named Trace; "" stands for none.
func (r *reported) ctx(ctx context.Context, trace string) context.Context {
	if trace == "" {
		return ctx
	}
	record := func(what string, failing bool) func(context.Context, locktrace.NodeInfo) {
		return func(_ context.Context, info locktrace.NodeInfo) {
			key := fmt.Sprint(trace, info.Node)
			if r.failing[key] == failing {
				r.t.Errorf("%s is told again that node %d is %s", trace, info.Node, what)
			}
			r.failing[key] = failing
			r.events = append(r.events, fmt.Sprintf("%s: %d %s", trace, info.Node, what))
		}
	}
	return locktrace.With(ctx, &locktrace.Trace{NodeFailing: record("failing", true), NodeRecovered: record("recovered", false)})
}

// A Trace that was told of a failure is told of the recovery, and no other is, whichever call
// notices either.
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
		r := &reported{t: t, failing: map[string]bool{}}
		shared := &quorumHealth{size: 2}
		nodes := []*quorumNode{{quorum: shared}, {quorum: shared, index: 1}}
		for _, c := range tt.calls {
			var err error
			if c.fails {
				err = errors.New("connection refused")
			}
			ctx := r.ctx(t.Context(), c.trace)
			nodes[c.node].beginCall(ctx, time.Second)
			time.Sleep(2 * time.Second) //nolint:forbidigo // fake time
			nodes[c.node].endCall(ctx, &err, time.Second)
			synctest.Wait()
		}
		check.Equal(t, "told", strings.Join(r.events, ", "), tt.want)
	})
}

// After a callback that blocks, whatever was noticed with or without a Trace, the last report to
// each Trace is true.
func TestNodeReportsWaitingBehindACallback(t *testing.T) {
	t.Parallel()
	traces := []string{"a", "b", ""}
	for seed := range 3 * 3 * 3 * 3 * 3 {
		synctest.Test(t, func(t *testing.T) {
			r := &reported{t: t, failing: map[string]bool{}}
			n := &quorumNode{quorum: &quorumHealth{size: 1}}
			blocked, first := make(chan struct{}), true
			block := func(context.Context, locktrace.NodeInfo) {
				if first {
					first = false
					<-blocked
				}
			}
			var calls []string
			for i, rest := 0, seed; i < 5; i, rest = i+1, rest/3 {
				ctx := locktrace.With(r.ctx(t.Context(), traces[rest%3]), &locktrace.Trace{NodeFailing: block, NodeRecovered: block})
				if traces[rest%3] == "" {
					ctx = t.Context()
				}
				calls = append(calls, traces[rest%3])
				err := []error{errors.New("connection refused"), nil}[i%2]
				n.beginCall(ctx, time.Second)
				time.Sleep(2 * time.Second) //nolint:forbidigo // fake time
				n.endCall(ctx, &err, time.Second)
				synctest.Wait()
			}
			close(blocked)
			synctest.Wait()
			var failing []string
			for key, fails := range r.failing {
				if fails {
					failing = append(failing, key)
				}
			}
			noticed := slices.ContainsFunc(calls, func(c string) bool { return c != "" })
			if last := calls[4] != ""; len(failing) > 1 || last && len(failing) != 1 {
				t.Errorf("calls by %q: %v say that it fails, want one", calls, failing)
			}
			if !noticed && len(r.events) > 0 {
				t.Errorf("told %q, want nothing", r.events)
			}
			err := error(nil)
			n.beginCall(t.Context(), time.Second)
			n.endCall(t.Context(), &err, time.Second)
			synctest.Wait()
			for key, fails := range r.failing {
				if fails {
					t.Errorf("calls by %q: %s still fails", calls, key)
				}
			}
		})
	}
}
