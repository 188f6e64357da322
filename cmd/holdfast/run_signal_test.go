//go:build unix

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-go/holdfast/internal/check"
)

// Signals reach the command and its children, and its status is passed on; the lock is released.
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
			check.Equal(t, "the lock is held", held(t, s, name), true)
			check.Must(t, p.cmd.Process.Signal(sig))
			rest, status := p.end(t)
			if status != 1 || !strings.Contains(rest, "child\n") || !strings.Contains(rest, "grandchild\n") {
				t.Errorf("status %d, output %q, standard error %q", status, rest, p.stderr)
			}
			check.Equal(t, "the lock is held after the end", held(t, s, name), false)
		})
	}
}

// A signal ends a stopped command too, for example one stopped by a read from the terminal.
func TestRunSignalWhileStopped(t *testing.T) {
	t.Parallel()
	s := shared.Get(t)
	p := begin(t, at(s.Addr()), "run", "stopped", "--", "sh", "-c", `echo $$; kill -STOP $$; exec sleep 600`)
	pid := p.line(t)
	if runtime.GOOS == "linux" {
		check.Eventually(t, "the command is stopped", func() bool { return stateOf(pid) == "T" })
	}
	check.Equal(t, "output", p.terminate(t), "")
	check.Equal(t, "the lock is held after the end", held(t, s, "stopped"), false)
}

func newFIFO(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "fifo")
	check.Must(t, syscall.Mkfifo(path, 0o600))
	return path
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
	p1 := hold(t, at(s.Addr()), "waiting")
	p2 := begin(t, at(s.Addr()), "run", "waiting", "--", "echo", "ran")
	check.Eventually(t, "it waits in the queue", func() bool { return held(t, s, "{waiting}:waiters") })
	check.Equal(t, "output", p2.terminate(t), "")
	p1.terminate(t)
	check.Eventually(t, "nothing is left", func() bool { return !held(t, s, "waiting") && !held(t, s, "{waiting}:waiters") })
}
