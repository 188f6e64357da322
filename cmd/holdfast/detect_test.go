//go:build unix

package main

import (
	"os"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/locker"
)

// rule returns the ACL rule of a strategy in SECURITY.md, as arguments of ACL SETUSER.
func rule(t *testing.T, strategy string) (words []any) {
	t.Helper()
	text := locker.Must(os.ReadFile("../../SECURITY.md"))
	_, rest, _ := strings.Cut(string(text), "\nACL SETUSER "+strategy+" ")
	line, _, ok := strings.Cut(rest, "\n")
	if !ok {
		t.Fatalf("SECURITY.md has no rule for %s", strategy)
	}
	for word := range strings.FieldsSeq(line) {
		words = append(words, word)
	}
	return words
}

// who and release find the strategy of a lock, with no more permissions than the strategy needs.
func TestDetectStrategy(t *testing.T) {
	t.Parallel()
	s := shared.Get(t)
	for _, strategy := range []string{"single", "reentrant", "rwhash", "semaphore:2"} {
		t.Run(strategy, func(t *testing.T) {
			t.Parallel()
			name, _, _ := strings.Cut(strategy, ":")
			user, key := "detect-"+name, "lock:detect:"+name
			s.MustCommand(t, append([]any{"ACL", "SETUSER", user, "reset"}, rule(t, name)...)...)
			env := at(user + ":secret@" + s.Addr())
			status := func(want int, args ...string) string { t.Helper(); return ends(t, want, env, args...) }
			status(statusFree, "who", key)
			p := hold(t, env, key, "--strategy", strategy, "--note", "me")
			if out := status(0, "who", key); !strings.Contains(out, `note "me"`) {
				t.Errorf("who prints %q", out)
			}
			watch := begin(t, env, "watch", key, "--interval", "50ms")
			if line := watch.line(t); !strings.Contains(line, `note "me"`) {
				t.Errorf("watch prints %q", line)
			}
			status(0, "release", "--force", key)
			if line := watch.line(t); !strings.Contains(line, "free") {
				t.Errorf("watch prints %q", line)
			}
			status(statusFree, "release", "--force", key)
			p.loses(t)
			_ = watch.cmd.Process.Kill()
			watch.end(t)
		})
	}
}

// What is no lock is not shown as one, and not removed. A string may be the lock of another
// library.
func TestDetectNoLock(t *testing.T) {
	t.Parallel()
	s := shared.Get(t)
	s.MustCommand(t, "SET", "nolock:string", "some text")
	s.MustCommand(t, "HSET", "nolock:hash", "a", "b")
	s.MustCommand(t, "HSET", "nolock:kind", "kind", "b")
	s.MustCommand(t, "ZADD", "nolock:zset", "1", "b")
	s.MustCommand(t, "RPUSH", "nolock:list", "1")
	for _, c := range []struct {
		key, arg string
		status   int
		text     string
	}{
		{"string", "who", 0, ""},
		{"string", "release", statusFailed, "--strategy single"},
		{"hash", "who", statusFailed, "a hash that is no lock"},
		{"kind", "watch", statusFailed, "a hash that is no lock"},
		{"zset", "release", statusFailed, "a sorted set that is no semaphore"},
		{"list", "who", statusFailed, "a value of another type"},
	} {
		args := []string{c.arg, "nolock:" + c.key}
		if c.arg == "release" {
			args = append(args, "--force")
		}
		_, errs, status := run(t, at(s.Addr()), args...)
		if status != c.status || !strings.Contains(errs, c.text) {
			t.Errorf("%q: status %d: %s; want %d and %q", args, status, errs, c.status, c.text)
		}
		if !held(t, s, "nolock:"+c.key) {
			t.Errorf("%q removed the key", args)
		}
	}
	if _, errs, status := run(t, at(s.Addr()), "release", "--force", "--strategy", "single", "nolock:string"); status != 0 || held(t, s, "nolock:string") {
		t.Errorf("release of a string: status %d: %s", status, errs)
	}
}

// A quorum finds the strategy at its nodes.
func TestDetectStrategyOfQuorum(t *testing.T) {
	t.Parallel()
	env := []string{"HOLDFAST_NODES=" + nodes(t)}
	p := hold(t, env, "quorum", "--strategy", "rwhash", "--shared", "--note", "me")
	if out := must(t, env, "who", "quorum"); !strings.Contains(out, `note "me"`) {
		t.Errorf("who: %q", out)
	}
	if out := must(t, env, "release", "--force", "quorum"); !strings.Contains(out, `held shared`) {
		t.Errorf("release: %q", out)
	}
	p.loses(t)
}

// nodes returns the URLs of three independent servers: databases of one.
func nodes(t *testing.T) string {
	t.Helper()
	url := "redis://" + shared.Get(t).Addr()
	return url + "/1," + url + "/2," + url + "/3"
}
