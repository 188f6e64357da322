//go:build linux

package main

import (
	"errors"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
)

// Holdfast says so if it may not signal its command, which has changed its user. It waits for the
// rest of the command's group as for any other.
func TestRunOtherUser(t *testing.T) {
	t.Parallel()
	setpriv, err := exec.LookPath("setpriv")
	if err != nil || os.Getuid() != 0 {
		t.Skip("needs setpriv, and root")
	}
	other := &syscall.SysProcAttr{
		Credential:  &syscall.Credential{Uid: 65534, Gid: 65534},
		AmbientCaps: []uintptr{unix.CAP_SETUID},
	}
	needChangeOfUser(t, other)
	env := here(t)
	p := prepare(t, env, "run", "user", "--grace", "1s", "--", setpriv, "--reuid=1",
		"sh", "-c", `sleep 600 >/dev/null 2>&1 & echo $!; echo $$; exec sleep 600`)
	file := locker.Must(os.Open(os.Args[0]))
	defer file.Close()
	p.cmd.Path, p.cmd.ExtraFiles = "/proc/self/fd/3", []*os.File{file} // its folder is root's
	p.cmd.SysProcAttr = other
	p.start(t)
	rest, first := locker.Must(strconv.Atoi(p.line(t))), locker.Must(strconv.Atoi(p.line(t)))
	t.Cleanup(func() { _ = syscall.Kill(rest, syscall.SIGKILL) })
	const refused = "holdfast: the command did not get SIGTERM: operation not permitted\n"
	says := func(times int) func() bool {
		return func() bool { return strings.Count(p.stderr.String(), refused) == times }
	}
	check.Must(t, p.cmd.Process.Signal(syscall.SIGTERM))
	check.Eventually(t, "it did not pass SIGTERM on", says(1))
	must(t, env, "release", "--force", "user")
	check.Eventually(t, "it did not end the command", says(2))
	check.Must(t, syscall.Kill(first, syscall.SIGKILL))
	p.loses(t)
	check.Equal(t, "times that it did not kill the rest",
		strings.Count(p.stderr.String(), "did not get SIGKILL: operation not permitted\n"), 1)
}

// needChangeOfUser skips a test if root may not start a program so, for example in a container
// without CAP_SETUID, and fails it in CI.
func needChangeOfUser(t *testing.T, other *syscall.SysProcAttr) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "true")
	cmd.SysProcAttr = other
	switch err := cmd.Run(); {
	case !errors.Is(err, syscall.EPERM):
	case os.Getenv("CI") == "true":
		t.Fatal("CI=true, but root may not change its user:", err)
	default:
		t.Skip("root may not change its user:", err)
	}
}
