//go:build unix

package main

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/check"
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
	for _, strategy := range []string{"single", "reentrant", "rwhash", "redisson", "semaphore:2"} {
		t.Run(strategy, func(t *testing.T) {
			t.Parallel()
			name, _, _ := strings.Cut(strategy, ":")
			user, key := "detect-"+name, "lock:detect:"+name
			s.MustCommand(t, append([]any{"ACL", "SETUSER", user, "reset"}, rule(t, name)...)...)
			env := at(user + ":secret@" + s.Addr())
			status := func(want int, args ...string) string { t.Helper(); return ends(t, want, env, args...) }
			var given []string // a free key has no strategy: it is looked up as one of single
			if strategy == "redisson" {
				given = []string{"--strategy", strategy}
			}
			status(statusFree, append(given, "who", key)...)
			p := hold(t, env, key, "--strategy", strategy, "--note", "me")
			check.Contains(t, "who", status(0, "who", key), `note "me"`)
			watch := begin(t, env, "watch", key, "--interval", "50ms")
			check.Contains(t, "watch", watch.line(t), `note "me"`)
			status(0, "release", "--force", key)
			if given == nil {
				check.Contains(t, "watch", watch.line(t), "free")
			}
			status(statusFree, append(given, "release", "--force", key)...)
			p.loses(t)
			_ = watch.cmd.Process.Kill()
			watch.end(t)
		})
	}
}

// A key of no lock is neither shown as one nor removed. A string may be another library's lock.
func TestDetectNoLock(t *testing.T) {
	t.Parallel()
	s := shared.Get(t)
	s.MustCommand(t, "SET", "nolock:string", "some text")
	s.MustCommand(t, "HSET", "nolock:hash", "a", "b", "c", "d")
	s.MustCommand(t, "HSET", "nolock:field", "sku:42", "3")
	s.MustCommand(t, "HSET", "nolock:write", "mode", "write", "8743c9c0-0795-4907-87fd-6c719a6b4586:1:write", "1")
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
		{"field", "who", statusFailed, "a hash that is no lock"},
		{"kind", "watch", statusFailed, "a hash that is no lock"},
		{"write", "who", statusFailed, "an RReadWriteLock of Redisson"},
		{"zset", "release", statusFailed, "a sorted set that is no semaphore"},
		{"list", "who", statusFailed, "a value of another type"},
	} {
		args := []string{c.arg, "nolock:" + c.key}
		if c.arg == "release" {
			args = append(args, "--force")
		}
		says(t, c.status, c.text, at(s.Addr()), args...)
		check.Equal(t, fmt.Sprintf("after %q the key is there", args), held(t, s, "nolock:"+c.key), true)
	}
	if _, errs, status := run(t, at(s.Addr()), "release", "--force", "--strategy", "single", "nolock:string"); status != 0 || held(t, s, "nolock:string") {
		t.Errorf("release of a string: status %d: %s", status, errs)
	}
}

// Locks of other libraries are known by the forms of their values, which package interop compares with
// what the libraries write.
func TestDetectLibrary(t *testing.T) {
	t.Parallel()
	s := shared.Get(t)
	env := at(s.Addr())
	for name, value := range map[string]string{
		"redis-py or redlock": "7e3c1b0ec6ff11ef9b1f0242ac110002",
		"redsync":             "9/zYF0lBQ3b6nTtH1+Yqgw==",
		"Spring Integration":  "8743c9c0-0795-4907-87fd-6c719a6b4586",
		"ShedLock":            "ADDED:2026-03-01T02:00:00.000Z@db1",
		"another library":     "some text",
	} {
		key := "library:" + name
		s.MustCommand(t, "SET", key, value, "EX", 3600)
		for _, args := range [][]string{{"who", key}, {"ls", "--foreign", key}} {
			check.Contains(t, fmt.Sprint(args), must(t, env, args...), name+", or ")
		}
		out, _ := says(t, 0, "no lock is held", env, "ls", key)
		check.Equal(t, "ls without --foreign", out, "")
	}
	check.Contains(t, "JSON", must(t, env, "who", "--json", "library:redsync"), `"library":"redsync"`)

	s.MustCommand(t, "HSET", "library:redisson", "8743c9c0-0795-4907-87fd-6c719a6b4586:42", 1)
	s.MustCommand(t, "PEXPIRE", "library:redisson", 3600_000)
	for _, command := range []string{"who", "ls"} {
		check.Contains(t, command, must(t, env, command, "library:redisson"), "strategy redisson")
	}
	check.Contains(t, "release", must(t, env, "release", "--force", "library:redisson"), "ended: held exclusive")
	check.Equal(t, "after release the key is there", held(t, s, "library:redisson"), false)
}

// A quorum finds the strategy at its nodes.
func TestDetectStrategyOfQuorum(t *testing.T) {
	t.Parallel()
	env := []string{"HOLDFAST_NODES=" + nodes(t)}
	p := hold(t, env, "quorum", "--strategy", "rwhash", "--shared", "--note", "me")
	check.Contains(t, "who", must(t, env, "who", "quorum"), `note "me"`)
	check.Contains(t, "release", must(t, env, "release", "--force", "quorum"), "held shared")
	p.loses(t)
}

// nodes returns the URLs of three independent servers: databases of one.
func nodes(t *testing.T) string {
	t.Helper()
	url := "redis://" + shared.Get(t).Addr()
	return url + "/1," + url + "/2," + url + "/3"
}
