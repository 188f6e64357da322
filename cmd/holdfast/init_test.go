//go:build linux

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// children returns the process ids of the children of a process that are in one of the states.
func children(t *testing.T, parent, states string) (pids []string) {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range all {
		stat, _ := os.ReadFile(path)
		_, after, _ := strings.Cut(string(stat), ") ")
		if fields := strings.Fields(after); len(fields) > 1 && fields[1] == parent && strings.Contains(states, fields[0]) {
			pids = append(pids, filepath.Base(filepath.Dir(path)))
		}
	}
	return pids
}

// As the first process of a container, holdfast waits for the processes that it inherits.
func TestRunAsInit(t *testing.T) {
	t.Parallel()
	unshare := []string{"--user", "--map-root-user", "--pid", "--fork", "--kill-child", "--"}
	if err := exec.CommandContext(t.Context(), "unshare", append(unshare, "true")...).Run(); err != nil {
		t.Skip("no namespaces: ", err)
	}
	path, err := exec.LookPath("unshare")
	if err != nil {
		t.Fatal(err)
	}
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	env := append(here(t), "FIFO="+fifo)
	p := prepare(t, env, "run", "init", "--", "sh", "-c", `sh -c 'read x <"$FIFO" &'; echo ready; exec sleep 60`)
	p.cmd.Args = append(append([]string{path}, unshare...), p.cmd.Args...)
	p.cmd.Path = path
	p.start(t)
	p.line(t)
	inits := children(t, strconv.Itoa(p.cmd.Process.Pid), "SRD")
	if len(inits) != 1 {
		t.Fatalf("unshare has the children %v", inits)
	}
	const alive = "SRDTZ"
	eventually(t, "an orphan is inherited", func() bool { return len(children(t, inits[0], alive)) == 2 })
	if err := os.WriteFile(fifo, []byte("x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the orphan is waited for", func() bool { return len(children(t, inits[0], alive)) == 1 })
	// A signal of the terminal, of docker stop and so on reaches holdfast itself.
	pid, err := strconv.Atoi(inits[0])
	if err == nil {
		err = syscall.Kill(pid, syscall.SIGTERM)
	}
	if err != nil {
		t.Error(err)
	}
	if _, status := p.end(t); status != 128+15 {
		t.Errorf("status %d: %s", status, p.stderr)
	}
}
