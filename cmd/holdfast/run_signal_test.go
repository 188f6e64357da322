//go:build unix

package main

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// Signals reach the command and its children, whose status is passed on; the lock is released.
func TestRunSignals(t *testing.T) {
	t.Parallel()
	s := shared.Get(t)
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGUSR1} {
		t.Run(sig.String(), func(t *testing.T) {
			t.Parallel()
			name := fmt.Sprintf("signals:%d", sig)
			script := fmt.Sprintf(`trap 'echo child; exit 1' %d; sh -c "trap 'echo grandchild; exit 1' %[1]d; echo ready; while :; do sleep 0.1; done"; exit 3`, sig)
			p := begin(t, at(s.Addr()), "run", name, "--", "sh", "-c", script)
			p.line(t)
			if !held(t, s, name) {
				t.Error("the lock is not held")
			}
			if err := p.cmd.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
			rest, status := p.end(t)
			if status != 1 || !strings.Contains(rest, "child\n") || !strings.Contains(rest, "grandchild\n") {
				t.Errorf("status %d, output %q, standard error %q", status, rest, p.stderr)
			}
			if held(t, s, name) {
				t.Error("the lock is held after the end")
			}
		})
	}
}

// A signal ends a command that is stopped too, as one that wants to read from the terminal is.
func TestRunSignalWhileStopped(t *testing.T) {
	t.Parallel()
	s := shared.Get(t)
	p := begin(t, at(s.Addr()), "run", "stopped", "--", "sh", "-c", `echo $$; kill -STOP $$; exec sleep 60`)
	pid := p.line(t)
	if runtime.GOOS == "linux" {
		eventually(t, "the command is stopped", func() bool { return stateOf(pid) == "T" })
	}
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	if rest, status := p.end(t); status != 128+15 || rest != "" {
		t.Errorf("status %d, output %q, standard error %q", status, rest, p.stderr)
	}
	if held(t, s, "stopped") {
		t.Error("the lock is held after the end")
	}
}

// stateOf returns the letter for the state of a process on Linux, or "" if there is no such
// process.
func stateOf(pid string) string {
	stat, _ := os.ReadFile("/proc/" + pid + "/stat")
	_, after, _ := strings.Cut(string(stat), ") ")
	state, _, _ := strings.Cut(after, " ")
	return state
}

// A signal ends the wait for a lock, and no command runs.
func TestRunSignalWhileWaiting(t *testing.T) {
	t.Parallel()
	s := shared.Get(t)
	p1 := begin(t, at(s.Addr()), "run", "waiting", "--", "sh", "-c", "echo ready; exec sleep 60")
	p1.line(t)
	p2 := begin(t, at(s.Addr()), "run", "waiting", "--", "echo", "ran")
	eventually(t, "it waits in the queue", func() bool { return held(t, s, "{waiting}:waiters") })
	_ = p2.cmd.Process.Signal(syscall.SIGTERM)
	if rest, status := p2.end(t); status != 128+15 || rest != "" {
		t.Errorf("status %d, output %q, standard error %q", status, rest, p2.stderr)
	}
	_ = p1.cmd.Process.Signal(syscall.SIGTERM)
	p1.end(t)
	eventually(t, "nothing is left", func() bool { return !held(t, s, "waiting") && !held(t, s, "{waiting}:waiters") })
}
