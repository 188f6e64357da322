//go:build unix

package main

import (
	"encoding/json"
	"strings"
	"syscall"
	"testing"
)

// An operator sees the holder, ends its hold, and sees who is next.
func TestWhoWatchRelease(t *testing.T) {
	t.Parallel()
	env := here(t)
	status := func(want int, args ...string) string {
		t.Helper()
		out, errs, got := run(t, env, args...)
		if got != want {
			t.Errorf("%q: status %d, want %d: %s", args, got, want, errs)
		}
		return out
	}
	status(statusFree, "who", "operator")
	status(statusFree, "release", "--force", "operator")
	watch := begin(t, env, "watch", "operator", "--json", "--interval", "50ms")
	next := func() (l lockJSON) {
		t.Helper()
		if err := json.Unmarshal([]byte(watch.line(t)), &l); err != nil {
			t.Error(err)
		}
		return l
	}
	if l := next(); l.Held || l.Name != "operator" {
		t.Errorf("at first: %+v", l)
	}

	p := begin(t, env, "run", "operator", "--fenced", "--note", "me", "--ttl", "3s", "--", "sh", "-c", "echo ready; exec sleep 60")
	p.line(t)
	if l := next(); !l.Held || l.Note != "me" || l.Holds != 1 || l.Fence == 0 || l.Left <= 0 || l.Mode != "exclusive" {
		t.Errorf("while it is held: %+v", l)
	}
	if out := status(0, "who", "operator"); !strings.Contains(out, `held exclusive`) || !strings.Contains(out, `note "me"`) {
		t.Errorf("who prints %q", out)
	}
	status(statusUsage, "release", "operator")
	if out := status(0, "release", "--force", "operator", "--json"); !strings.Contains(out, `"note":"me"`) {
		t.Errorf("release prints %q", out)
	}
	if l := next(); l.Held {
		t.Errorf("after the release: %+v", l)
	}
	if _, got := p.end(t); got != statusLost {
		t.Errorf("the holder ends with %d: %s", got, p.stderr)
	}
	_ = watch.cmd.Process.Signal(syscall.SIGTERM)
	if _, got := watch.end(t); got != 0 || watch.stderr.String() != "" {
		t.Errorf("watch ends with %d: %s", got, watch.stderr)
	}
}
