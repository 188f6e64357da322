//go:build linux

package main

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
)

func TestSuccession(t *testing.T) {
	t.Parallel()
	held := func(owner string, holds int) locker.State {
		return locker.State{Held: true, Owner: owner, Holds: holds}
	}
	free, kept := locker.State{}, locker.State{Held: true}
	for name, c := range map[string]struct {
		states []locker.State
		want   int
	}{
		"nobody":                    {[]locker.State{free, kept, free}, 0},
		"the first hold":            {[]locker.State{free, held("a", 1)}, 0},
		"the same hold":             {[]locker.State{held("a", 1), held("a", 1), held("a", 2)}, 0},
		"another owner":             {[]locker.State{held("a", 1), held("b", 1), held("a", 1)}, 2},
		"the same owner":            {[]locker.State{held("a", 1), free, held("a", 1)}, 1},
		"another one at last":       {[]locker.State{held("a", 1), free, free, held("b", 1), free}, 1},
		"behind a minimum hold":     {[]locker.State{held("a", 1), kept, held("b", 1)}, 1},
		"holds that overlap":        {[]locker.State{held("a", 1), held("b", 2), held("c", 2), held("b", 1)}, 0},
		"another note":              {[]locker.State{{Held: true, Holds: 1, Note: "a"}, {Held: true, Holds: 1, Note: "b"}}, 1},
		"the same owner's note":     {[]locker.State{{Held: true, Holds: 1, Owner: "o", Note: "a"}, {Held: true, Holds: 1, Owner: "o", Note: "b"}}, 0},
		"behind holds that overlap": {[]locker.State{held("b", 2), held("b", 1), held("c", 1)}, 1},
	} {
		var s succession
		got := 0
		for _, state := range c.states {
			got = s.update(state)
		}
		check.Equal(t, name+": hand-overs", got, c.want)
	}
}

func TestStatusText(t *testing.T) {
	t.Parallel()
	held := locker.State{Held: true, Holds: 1, Left: 10 * time.Second, Waiters: 2}
	without := func(change func(*locker.State)) locker.State { s := held; change(&s); return s }
	for want, got := range map[string]string{
		"":                                   statusText(locker.State{}, 0, true, true, 0),
		"8.5s left, 2 waiting":               statusText(held, 1500*time.Millisecond, false, false, 0),
		"0.0s left, 2 waiting, 1 hand-over":  statusText(held, time.Minute, false, false, 1),
		"2m5s left, 2 waiting":               statusText(without(func(s *locker.State) { s.Left = 2*time.Minute + 5*time.Second }), 0, false, false, 0),
		"10.0s left, 2 hand-overs":           statusText(without(func(s *locker.State) { s.Waiters = -1 }), 0, false, false, 2),
		"2 waiting":                          statusText(without(func(s *locker.State) { s.Left = 0 }), 0, false, false, 0),
		"0 waiting":                          statusText(locker.State{}, 0, false, false, 0),
		"no answer for 3s, 2 waiting":        statusText(held, 3*time.Second, false, true, 0),
		"no answer for 1m3s, 2 waiting, 1 h": truncate(statusText(held, 63*time.Second, false, true, 1), 44),
	} {
		if want != "" {
			want = "          " + want
		}
		check.Equal(t, "status text", got, want)
	}
	check.Equal(t, "truncated to", truncate("aäö", 2)+truncate("aäö", 3)+truncate("a", -1), "aäaäö")
}

// watch counts waiters and hand-overs.
func TestWatchCounts(t *testing.T) {
	t.Parallel()
	env := here(t)
	first := hold(t, env, "counted")
	watch := begin(t, env, "watch", "counted", "--json", "--interval", "20ms")
	until := func(what string, ok func(watchJSON) bool) {
		t.Helper()
		for {
			var w watchJSON
			check.Must(t, json.Unmarshal([]byte(watch.line(t)), &w))
			if ok(w) {
				return
			}
			t.Logf("not yet %s: %+v", what, w)
		}
	}
	until("alone", func(w watchJSON) bool { return w.Held && w.Waiters == 0 && w.HandOvers == 0 && w.Time != "" })
	second := begin(t, env, "run", "counted", "--", "sh", "-c", "echo ready; exec sleep 600")
	until("awaited", func(w watchJSON) bool { return w.Held && w.Waiters == 1 })
	term := atTerminal(t, shared.Get(t), "", "watch", "counted", "--interval", "20ms")
	term.send(t, "", "s left, 1 waiting", 2) // again and again
	first.terminate(t)
	second.line(t)
	until("handed over", func(w watchJSON) bool { return w.Held && w.Waiters == 0 && w.HandOvers == 1 })
	term.send(t, "", "s left, 0 waiting, 1 hand-over", 1)
	term.send(t, "\x03", "\r\x1b[K", 1)
	second.terminate(t)
	_ = watch.cmd.Process.Kill()
	watch.end(t)
}
