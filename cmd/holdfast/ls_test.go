//go:build unix

package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/effort"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// ls ends with an error that names the key if the server refuses to show its value.
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
		"semaphore": {"semaphore:2", []any{"~*", "+@all", "-zcount"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			user := "list-" + name
			s.MustCommand(t, append([]any{"ACL", "SETUSER", user, "reset", "on", ">secret"}, c.rule...)...)
			key := "refused:" + name
			must(t, at(s.Addr()), "run", key, "--strategy", c.strategy, "--min-hold", "1h", "--", "true")
			defer s.MustCommand(t, "DEL", key)
			out, _ := says(t, statusDenied, key, at(user+":secret@"+s.Addr()), "ls", key)
			check.Equal(t, "output", out, "")
		})
	}
}

// ls of nothing says so, and not as JSON.
func TestListNothing(t *testing.T) {
	t.Parallel()
	for _, env := range [][]string{here(t), {"HOLDFAST_NODES=" + nodes(t)}} {
		out, errs, status := run(t, env, "ls", "nothing:*")
		if status != 0 || out != "" || errs != "holdfast: no lock is held whose name matches \"nothing:*\"\n" {
			t.Errorf("status %d, %q, %q", status, out, errs)
		}
		out, _ = says(t, 0, "", env, "ls", "nothing:*", "--json")
		check.Equal(t, "output as JSON", out, "")
	}
}

// In a Cluster ls lists the locks of every master, over each client.
func TestListCluster(t *testing.T) {
	t.Parallel()
	effort.NeedFull(t)
	c := redistest.StartCluster(t, 3, redistest.Options{})
	env := []string{"HOLDFAST_URL=redis+cluster://" + c.Addrs()[0]}
	want := map[string]bool{}
	for i, node := range c.Nodes() {
		name := "" // in a slot of this node
		for n := 0; name == "" || c.NodeForSlot(redistest.Slot(name)) != node; n++ {
			name = fmt.Sprintf("list:%d-%d", i, n)
		}
		want[name] = true
		must(t, env, "run", name, "--strategy", "reentrant", "--min-hold", "1h", "--", "true")
	}
	for _, client := range clientNames() {
		out, _ := says(t, 0, "", append(env, "HOLDFAST_CLIENT="+client), "ls", "list:*")
		check.Equal(t, client+": lines of "+out, strings.Count(out, "\n"), len(want))
		for name := range want {
			check.Contains(t, client, out, name+"  released")
		}
	}
}

// In a quorum ls says how many nodes hold a lock, and gets by without a minority of them.
func TestListQuorum(t *testing.T) {
	t.Parallel()
	const nowhere = "redis://127.0.0.1:1"
	all := nodes(t)
	urls := splitURLs(all)
	must(t, []string{"HOLDFAST_URL=" + urls[0]}, "run", "listed:left", "--min-hold", "1h", "--", "true")
	p := hold(t, []string{"HOLDFAST_NODES=" + all}, "listed:all", "--strategy", "rwhash")
	list := func(nodes string, want int, args ...string) (out, errs string) {
		t.Helper()
		env := []string{"HOLDFAST_NODES=" + nodes}
		if strings.Contains(nodes, nowhere) {
			env = append(env, withItsLimits)
		}
		out, errs, status := run(t, env, append([]string{"ls", "listed:*"}, args...)...)
		if status != want {
			t.Errorf("%s: status %d, want %d: %s", nodes, status, want, errs)
		}
		return out, errs
	}
	out := ""
	check.Eventually(t, "all nodes hold it", func() bool { out, _ = list(all, 0); return strings.Contains(out, "at 3 of 3") })
	if lines := strings.Split(out, "\n"); len(lines) != 3 || !strings.HasPrefix(lines[0], "listed:all  held exclusive") ||
		!strings.HasSuffix(lines[0], "at 3 of 3 nodes") || lines[1] != "listed:left  held at 1 of 3 nodes, which is no quorum" {
		t.Errorf("ls prints %q", out)
	}
	out, _ = list(all, 0, "--json")
	if first, second, _ := strings.Cut(out, "\n"); !strings.Contains(first, `/1","`) || !strings.Contains(second, `"held":false`) ||
		strings.Count(second, "/1") != 1 {
		t.Errorf("ls --json prints %q", out)
	}
	out, errs := list(urls[0]+","+urls[1]+","+nowhere, 0)
	if !strings.Contains(out, "listed:all  held exclusive") || !strings.Contains(out, "at 2 of 3 nodes") ||
		!strings.Contains(out, "listed:left  held at 1 of 3 nodes, and 1 did not answer") || !strings.Contains(errs, "127.0.0.1:1") {
		t.Errorf("with a node that does not answer ls prints %q: %s", out, errs)
	}
	out, _ = list(urls[0]+","+urls[1]+","+nowhere, 0, "--json")
	if first, second, _ := strings.Cut(out, "\n"); strings.Contains(first, "undecided") || !strings.Contains(second, `"waiters":-1`) ||
		!strings.Contains(second, `"undecided":true`) {
		t.Errorf("with a node that does not answer ls --json prints %q", out)
	}
	list(urls[0]+","+nowhere+",redis://127.0.0.1:2", statusUnreachable)
	p.terminate(t)
	run(t, []string{"HOLDFAST_URL=" + urls[0]}, "release", "--force", "listed:left")
}
