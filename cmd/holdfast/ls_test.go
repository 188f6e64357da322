//go:build unix

package main

import (
	"strings"
	"testing"
)

// ls ends with an error, and names the key, where the server does not let it see what a key holds.
func TestListRefused(t *testing.T) {
	t.Parallel()
	s := shared.Get(t)
	for name, c := range map[string]struct {
		strategy string
		rule     []any
	}{
		"type":      {"single", []any{"~other:*", "+@all"}},
		"content":   {"single", []any{"~*", "+@all", "-getrange"}},
		"lease":     {"single", []any{"~*", "+@all", "-pttl"}},
		"kind":      {"reentrant", []any{"~*", "+@all", "-hget"}},
		"holds":     {"rwhash", []any{"~*", "+@all", "-hgetall"}},
		"counter":   {"reentrant", []any{"~refused:*", "+@all"}},
		"semaphore": {"semaphore:2", []any{"~*", "+@all", "-zcount"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			user := "list-" + name
			s.MustCommand(t, append([]any{"ACL", "SETUSER", user, "reset", "on", ">secret"}, c.rule...)...)
			key := "refused:" + name
			if _, errs, status := run(t, at(s.Addr()), "run", key, "--strategy", c.strategy, "--min-hold", "1h", "--", "true"); status != 0 {
				t.Fatalf("status %d: %s", status, errs)
			}
			out, errs, status := run(t, at(user+":secret@"+s.Addr()), "ls", key)
			if status != statusDenied || out != "" || !strings.Contains(errs, key) {
				t.Errorf("status %d, %q: %s; want status %d and the key", status, out, errs, statusDenied)
			}
		})
	}
}
