//go:build unix

package main

import (
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// A shell completes the names of held locks, and nothing if the server does not answer.
func TestCompleteName(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.Options{})
	for _, name := range []string{"complete:one", "complete:two", "complete*", "other"} {
		must(t, at(s.Addr()), "run", name, "--min-hold", "1h", "--", "true")
	}
	s.MustCommand(t, "SET", "complete:text", "text")
	complete := func(env []string, args ...string) string {
		t.Helper()
		out, errs, status := run(t, env, append([]string{"__complete"}, args...)...)
		if status != 0 || strings.Contains(errs, "holdfast:") {
			t.Errorf("%q: status %d: %s", args, status, errs)
		}
		return out
	}
	for _, command := range []string{"who", "watch", "release", "run", "leader"} {
		out := complete(at(s.Addr()), command, "complete:")
		if !strings.Contains(out, "complete:one\n") || !strings.Contains(out, "complete:two\n") || strings.Count(out, "\n") != 3 {
			t.Errorf("%s: completed to %q", command, out)
		}
	}
	check.Equal(t, "completion of a name with a star", complete(at(s.Addr()), "who", "complete*"), "complete*\n:4\n")
	check.Equal(t, "completion of a second name", complete(at(s.Addr()), "who", "other", ""), ":4\n")
	check.Equal(t, "completion without a login", complete(at("user:wrong@"+s.Addr()), "who", ""), ":4\n")
	check.Must(t, s.Freeze())
	for _, client := range clientNames() {
		out := complete(append(at(s.Addr()), withItsLimits, "HOLDFAST_CLIENT="+client), "who", "")
		check.Equal(t, client+": completion at a frozen server", out, ":4\n")
	}
}
