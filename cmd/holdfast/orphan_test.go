//go:build linux

package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
)

// children returns the ids of a process's children in one of the states.
func children(t *testing.T, parent, states string) (pids []string) {
	t.Helper()
	all := locker.Must(filepath.Glob("/proc/[0-9]*/stat"))
	for _, path := range all {
		stat, _ := os.ReadFile(path)
		_, after, _ := strings.Cut(string(stat), ") ")
		if fields := strings.Fields(after); len(fields) > 1 && fields[1] == parent && strings.Contains(states, fields[0]) {
			pids = append(pids, filepath.Base(filepath.Dir(path)))
		}
	}
	return pids
}

// Holdfast adopts the command's orphans, and waits for them: the first process of a container may
// not, and a zombie would count as a member of the command's group.
func TestRunAdoptsOrphans(t *testing.T) {
	t.Parallel()
	fifo := newFIFO(t)
	p := begin(t, append(here(t), "FIFO="+fifo), "run", "orphan", "--", "sh", "-c", `sh -c 'read x <"$FIFO" &'; echo ready; exec sleep 600`)
	p.line(t)
	const alive = "SRDTZ"
	pid := strconv.Itoa(p.cmd.Process.Pid)
	check.Eventually(t, "an orphan is adopted", func() bool { return len(children(t, pid, alive)) == 2 })
	check.Must(t, os.WriteFile(fifo, []byte("x\n"), 0o600))
	check.Eventually(t, "the orphan is waited for", func() bool { return len(children(t, pid, alive)) == 1 })
	p.terminate(t)
}
