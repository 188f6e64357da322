//go:build unix

package main

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/locker"
)

// An operator sees the holder, ends its hold, and sees the next one.
func TestWhoWatchRelease(t *testing.T) {
	t.Parallel()
	env := here(t)
	status := func(want int, args ...string) string { t.Helper(); return ends(t, want, env, args...) }
	status(statusFree, "who", "operator")
	status(statusFree, "release", "--force", "operator")
	watch := begin(t, env, "watch", "operator", "--json", "--interval", "50ms")
	next := func() (l lockJSON) {
		t.Helper()
		check.OK(t, json.Unmarshal([]byte(watch.line(t)), &l))
		return l
	}
	if l := next(); l.Held || l.Name != "operator" {
		t.Errorf("at first: %+v", l)
	}

	p := hold(t, env, "operator", "--fenced", "--note", "me")
	if l := next(); !l.Held || l.Note != "me" || l.Holds != 1 || l.Fence == 0 || l.Left <= 0 || l.Mode != "exclusive" {
		t.Errorf("while it is held: %+v", l)
	}
	if out := status(0, "who", "operator"); !strings.Contains(out, `held exclusive`) || !strings.Contains(out, `note "me"`) {
		t.Errorf("who prints %q", out)
	}
	status(statusUsage, "release", "operator")
	if out := status(0, "release", "--force", "operator", "--json"); !strings.HasPrefix(out, `{"name":"operator","ended":{"name":"operator","held":true,`) || !strings.Contains(out, `"note":"me"`) {
		t.Errorf("release prints %q", out)
	}
	check.Equal(t, "held after the release", next().Held, false)
	p.loses(t)
	_ = watch.cmd.Process.Signal(syscall.SIGTERM)
	if _, got := watch.end(t); got != 0 || watch.stderr.String() != "" {
		t.Errorf("watch ends with %d: %s", got, watch.stderr)
	}
}

// The next host leads when the command of the first one ends, and after its lead was lost the first
// one campaigns again.
func TestLeader(t *testing.T) {
	t.Parallel()
	s := shared.Get(t)
	lead := []string{"leader", "lead", "--", "sh", "-c", `echo "$HOLDFAST_FENCE"; exec sleep 600`}
	p1 := begin(t, at(s.Addr()), lead...)
	term1 := p1.line(t)
	p2 := begin(t, at(s.Addr()), lead...)
	check.Eventually(t, "the second one waits", func() bool { return held(t, s, "{lead}:waiters") })
	must(t, at(s.Addr()), "release", "--force", "lead")
	term2 := p2.line(t)
	check.Eventually(t, "the first one notices", func() bool { return strings.Contains(p1.stderr.String(), "was lost") })
	p2.terminate(t)
	if term3 := p1.line(t); term1 >= term2 || term2 >= term3 {
		t.Errorf("terms %s, %s, %s", term1, term2, term3)
	}
	p3 := begin(t, at(s.Addr()), lead...)
	check.Eventually(t, "the third one waits", func() bool { return held(t, s, "{lead}:waiters") })
	check.Equal(t, "the third one", p3.terminate(t), "")
	p1.terminate(t)
}

// The name may begin with a dash.
func TestLeaderDash(t *testing.T) {
	t.Parallel()
	out := must(t, here(t), "leader", "--", "-dash", "--", "sh", "-c", `echo "$HOLDFAST_NAME"`)
	check.Equal(t, "output", out, "-dash\n")
}

// A candidate without a server reports it once, and campaigns on.
func TestLeaderOutage(t *testing.T) {
	t.Parallel()
	for _, client := range clientsFor(0) {
		t.Run(client, func(t *testing.T) {
			t.Parallel()
			p := begin(t, append(at("127.0.0.1:1"), "HOLDFAST_CLIENT="+client), "leader", "outage", "--", "true")
			check.Eventually(t, "it reports the outage", func() bool { return strings.Contains(p.stderr.String(), "; campaigning on\n") })
			if p.terminate(t); strings.Count(p.stderr.String(), "\n") != 1 {
				t.Errorf("it says %s", p.stderr)
			}
		})
	}
}

// A semaphore without a free permit says so.
func TestFullSemaphoreJSON(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	check.Must(t, printState(&b, "full", lockState{State: locker.State{Held: true, Holds: 2, Permits: 2}}, true))
	check.Contains(t, "JSON", b.String(), `"permits":2,"free":0`)
}

// ls lists names kept taken by a minimum hold, and takes a prefix literally.
func TestListMinHoldsUnderPrefix(t *testing.T) {
	t.Parallel()
	env := append(at(redistest.Start(t, redistest.Options{}).Addr()), `HOLDFAST_PREFIX=kept[1]*?\`)
	for _, strategy := range []string{"single", "reentrant", "rwhash", "semaphore:2"} {
		must(t, env, "run", strategy, "--strategy", strategy, "--min-hold", "1h", "--", "true")
		if out := must(t, env, "ls", strategy); !strings.HasPrefix(out, strategy+"  released, but its minimum hold keeps it taken") {
			t.Errorf("%s: ls prints %q", strategy, out)
		}
	}
}

// ls lists the locks of each strategy, over each client, and nothing else.
func TestList(t *testing.T) {
	t.Parallel()
	s := shared.Get(t)
	for _, strategy := range []string{"single", "reentrant", "rwhash", "semaphore:2"} {
		p := hold(t, at(s.Addr()), "list:"+strategy, "--strategy", strategy, "--note", "of "+strategy)
		t.Cleanup(func() { p.terminate(t) })
	}
	s.MustCommand(t, "SET", "list:text", "some text")
	s.MustCommand(t, "HSET", "list:hash", "a", "b")
	s.MustCommand(t, "ZADD", "list:zset", "1", "b")
	s.MustCommand(t, "RPUSH", "list:list", "1")
	for _, client := range clientNames() {
		out, _ := says(t, 0, "", append(at(s.Addr()), "HOLDFAST_CLIENT="+client), "ls", "list:*", "--json")
		got := map[string]string{}
		for line := range strings.Lines(out) {
			var l lockJSON
			check.OK(t, json.Unmarshal([]byte(line), &l))
			got[l.Name] = l.Note
		}
		for _, strategy := range []string{"single", "reentrant", "rwhash", "semaphore:2"} {
			check.Equal(t, client+": note of "+strategy, got["list:"+strategy], "of "+strategy)
		}
		check.Equal(t, client+": locks that are listed", len(got), 4)
	}
}

// who shows since when a lock is held, by which strategy, and for which command.
func TestWhoShowsCommand(t *testing.T) {
	t.Parallel()
	env := here(t)
	for _, strategy := range strategyNames {
		spec := strings.Replace(strategy, "semaphore", "semaphore:2", 1)
		began := time.Now().Truncate(time.Second)
		p := hold(t, env, "command:"+strategy, "--strategy", spec)
		out, errs, status := run(t, env, "who", "command:"+strategy)
		note := regexp.MustCompile(`, strategy ` + strategy + `, .*note ".*@.* pid ` + strconv.Itoa(p.cmd.Process.Pid) +
			` since (\S+): sh -c echo ready; exec sleep 600"`).FindStringSubmatch(out)
		if status != 0 || note == nil {
			t.Fatalf("%s: status %d, %q: %s", strategy, status, out, errs)
		}
		since, err := time.Parse(time.RFC3339, note[1])
		if err != nil || since.Before(began) || since.After(time.Now()) {
			t.Errorf("%s: it began at %s, and not in %q: %v", strategy, began, out, err)
		}
		if out, _, _ := run(t, env, "who", "command:"+strategy, "--json"); !strings.Contains(out, `"strategy":"`+strategy+`"`) {
			t.Errorf("%s: %q", strategy, out)
		}
		p.terminate(t)
	}
}

// A note is cut between characters if the command is long.
func TestLongNote(t *testing.T) {
	t.Parallel()
	for n := range 3 {
		note := newNote([]string{strings.Repeat("x", n) + strings.Repeat("\u20ac", locker.MaxNameLen)})(time.Now())
		if !utf8.ValidString(note) || len(note) > locker.MaxNameLen || len(note) < locker.MaxNameLen-3 {
			t.Errorf("%d bytes: %q", len(note), note)
		}
	}
}
