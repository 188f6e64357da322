//go:build linux

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/locker"
)

// terminal is a terminal and the output of a session on it. ended is closed when its programs have
// ended.
type terminal struct {
	*os.File
	out   *check.Buffer
	ended chan struct{}
}

// noTerminal skips a test without a terminal, and fails it in CI.
func noTerminal(t *testing.T, err error) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatal("CI=true, but there are no terminals: ", err)
	}
	t.Skip("no terminals: ", err)
}

// atTerminal starts a session on a terminal of its own.
func atTerminal(t *testing.T, s *redistest.Server, program string, args ...string) *terminal {
	t.Helper()
	return atTerminalOf(t, s, 0, program, args...)
}

// atTerminalOf is atTerminal with a width; 0: unknown.
func atTerminalOf(t *testing.T, s *redistest.Server, width uint16, program string, args ...string) *terminal {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		noTerminal(t, err)
	}
	t.Cleanup(func() { _ = master.Close() })
	raw := locker.Must(master.SyscallConn())
	number := 0
	if err := raw.Control(func(fd uintptr) {
		_ = unix.IoctlSetPointerInt(int(fd), unix.TIOCSPTLCK, 0)
		number, err = unix.IoctlGetInt(int(fd), unix.TIOCGPTN)
	}); err != nil {
		t.Fatal(err)
	}
	check.Must(t, unix.IoctlSetWinsize(int(master.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: width}))
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		noTerminal(t, err)
	}
	defer slave.Close()
	cmd := command(t, append(at(s.Addr()), "PS1=$ ", "ENV="), args...)
	if program != "" {
		cmd.Path, cmd.Args[0] = program, program
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	check.Must(t, cmd.Start())
	term := &terminal{master, new(check.Buffer), make(chan struct{})}
	go func() {
		defer close(term.ended)
		for part := make([]byte, 4096); ; {
			n, err := master.Read(part)
			_, _ = term.out.Write(part[:n])
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // the kernel hangs the others up
		_ = cmd.Wait()
		_ = master.Close()
		<-term.ended
		if t.Failed() {
			t.Logf("the terminal shows %q", term.out)
		}
	})
	return term
}

// atShell starts a shell on a terminal. run is the start of a command line with holdfast.
func atShell(t *testing.T, s *redistest.Server, name string) (term *terminal, run string) {
	t.Helper()
	term = atTerminal(t, s, locker.Must(exec.LookPath("sh")), "-i")
	term.send(t, "unset "+asProgram+"\n", "", 0)
	return term, fmt.Sprintf("%s=1 '%s' run %s --ttl 1h -- sh -c ", asProgram, os.Args[0], name)
}

// send types a text, and waits until the terminal has shown show n times in all.
func (term *terminal) send(t *testing.T, text, show string, n int) {
	t.Helper()
	locker.Must(term.WriteString(text))
	check.Eventually(t, fmt.Sprintf("%q is shown %d times", show, n), func() bool { return strings.Count(term.out.String(), show) >= n })
}

// A shell stops holdfast with its command, and both go on in the foreground or the background. A
// command that ends in the background leaves the terminal to its owner.
func TestRunJobControl(t *testing.T) {
	t.Parallel()
	s, fifo := shared.Get(t), newFIFO(t)
	term, run := atShell(t, s, "job")
	term.send(t, run+`'echo rea""dy; exec cat'`+"\n", "ready", 1)
	for i := range 3 {
		term.send(t, "\x1a", "Stopped", i+1)
		term.send(t, "fg\n", "", 0)
		again := fmt.Sprintf("again%d", i)
		term.send(t, again+"\n", again, 2) // echoed, and by cat
	}
	term.send(t, "\x04", "", 0)
	check.Eventually(t, "the lock is released", func() bool { return !held(t, s, "job") })

	term.send(t, run+`'echo rea""dy; read x <`+fifo+"'\n", "ready", 2)
	term.send(t, "\x1a", "Stopped", 4)
	term.send(t, "bg\ncat\n", "", 0)
	term.send(t, "one\n", "one", 2)
	check.Must(t, os.WriteFile(fifo, []byte("x\n"), 0o600))
	check.Eventually(t, "the lock is released", func() bool { return !held(t, s, "job") })
	term.send(t, "two\n", "two", 2)
}

// Without a shell, Ctrl-Z does not stop holdfast: nobody could continue it.
func TestRunCtrlZWithoutShell(t *testing.T) {
	t.Parallel()
	s := shared.Get(t)
	term := atTerminal(t, s, "", "run", "ctrl-z", "--", "sh", "-c", "echo ready; exec cat")
	term.send(t, "", "ready", 1)
	term.send(t, "\x1a", "^Z", 1)
	term.send(t, "alive\n", "alive", 2)
	term.send(t, "\x04", "", 0)
	check.Eventually(t, "the lock is released", func() bool { return !held(t, s, "ctrl-z") })
}

// After a command that cannot be started, a script has the terminal again.
func TestRunNoProgramAtTerminal(t *testing.T) {
	t.Parallel()
	script := filepath.Join(t.TempDir(), "script")
	check.Must(t, os.WriteFile(script, []byte("true\n"), 0o700))
	term := atTerminal(t, shared.Get(t), locker.Must(exec.LookPath("sh")), "-c",
		`"$0" run no-program -- "$1"; echo "status $?"; read x; echo "got $x"`, os.Args[0], script)
	term.send(t, "", "status 126", 1)
	term.send(t, "me\n", "got me", 1)
}

// No command of a leader ignores SIGTTOU, as holdfast does once it has started one.
func TestLeaderAtTerminal(t *testing.T) {
	t.Parallel()
	s := shared.Get(t)
	term := atTerminal(t, s, "", "leader", "terminal", "--", "sh", "-c", "grep SigIgn /proc/self/status; exec sleep 600")
	ignored := regexp.MustCompile(`SigIgn:\s+([0-9a-f]+)\r`)
	for n := range 2 {
		var found [][]string
		check.Eventually(t, "a command runs", func() bool {
			found = ignored.FindAllStringSubmatch(term.out.String(), -1)
			return len(found) > n
		})
		if mask := locker.Must(strconv.ParseUint(found[n][1], 16, 64)); mask&(1<<(syscall.SIGTTOU-1)) != 0 {
			t.Errorf("command %d ignores %x", n, mask)
		}
		must(t, at(s.Addr()), "release", "--force", "terminal")
	}
}

// Ctrl-C ends a script with holdfast, in shells that die of it at once and in those that wait how their
// program ends. The lock is released by then.
func TestRunInterruptedScript(t *testing.T) {
	t.Parallel()
	s := shared.Get(t)
	for _, shell := range []string{"sh", "bash"} {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			path, err := exec.LookPath(shell)
			if err != nil {
				t.Skip(err)
			}
			name := "script:" + shell
			term := atTerminal(t, s, path, "-c", `for i in 1 2; do "$0" run "$1" -- sh -c 'echo ready; exec sleep 600'; done; echo "the end"`, os.Args[0], name)
			term.send(t, "", "ready", 1)
			term.send(t, "\x03", "^C", 1)
			check.Eventually(t, "the script ends", func() bool { return check.Closed(term.ended) })
			check.Equal(t, "the lock is held after the end", held(t, s, name), false)
			check.Equal(t, "the terminal shows", term.out.String(), "ready\r\n^C")
		})
	}
}

// In a pipeline a program behind holdfast, such as less, goes on reading from the terminal while
// the command runs, and Ctrl-Z stops the command too.
func TestRunInPipeline(t *testing.T) {
	t.Parallel()
	s, fifo := shared.Get(t), newFIFO(t)
	term, run := atShell(t, s, "pipeline")
	reader := `sh -c 'read l; echo "got $l"; read x </dev/tty; echo "typed $x"; read x </dev/tty; echo "typed $x"; cat'`
	term.send(t, run+`'echo $$; read x <`+fifo+`; echo the en""d' | `+reader+"\n", "", 0)
	pid := ""
	check.Eventually(t, "the reader has a line", func() bool {
		out := term.out.String()
		line, _, ended := strings.Cut(out[strings.LastIndex(out, "got ")+1:], "\r\n")
		line = strings.TrimPrefix(line, "ot ")
		pid = line
		return ended && line != "" && strings.Trim(line, "0123456789") == ""
	})
	term.send(t, "one\n", "typed one", 1)
	if state := stateOf(pid); state != "S" && state != "R" {
		t.Errorf("the command is in state %q", state)
	}
	term.send(t, "\x1a", "Stopped", 1)
	check.Eventually(t, "the command is stopped", func() bool { return stateOf(pid) == "T" })
	term.send(t, "fg\n", "", 0)
	check.Eventually(t, "the command goes on", func() bool { return stateOf(pid) == "S" })
	term.send(t, "two\n", "typed two", 1)
	check.Must(t, os.WriteFile(fifo, []byte("x\n"), 0o600))
	term.send(t, "", "the end", 1)
	check.Eventually(t, "the lock is released", func() bool { return !held(t, s, "pipeline") })

	// A command at the end of a pipeline gets the terminal when it asks for it, and holdfast has it
	// back in the end.
	term.send(t, "echo data | "+run+`'cat; read y </dev/tty; echo "answer $y"'; cat`+"\n", "data\r\n", 1)
	term.send(t, "me\n", "answer me", 1)
	term.send(t, "after\n", "after", 2)
	term.send(t, "\x04", "", 0)
}

// At a terminal, release asks before it ends a hold, and does not ask about a free lock.
func TestReleaseAsks(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.Options{})
	must(t, at(s.Addr()), "run", "asked", "--min-hold", "1h", "--", "true")
	term := atTerminal(t, s, "", "release", "asked")
	term.send(t, "", "End this hold?", 1)
	term.send(t, "yes\n", "asked  ended: a minimum hold that kept it taken", 1)
	check.Eventually(t, "the hold is ended", func() bool { return !held(t, s, "asked") })
	term = atTerminal(t, s, "", "release", "asked")
	term.send(t, "", "lock is not held", 1)
	check.Equal(t, "it asks about a free lock", strings.Contains(term.out.String(), "End this hold?"), false)

	hold := []string{"run", "asked", "--min-hold", "1h", "--note"}
	for i, note := range []string{"first", "second"} {
		s.MustCommand(t, "DEL", "asked")
		must(t, at(s.Addr()), append(hold, note, "--", "true")...)
		if i == 0 {
			term = atTerminal(t, s, "", "release", "asked")
			term.send(t, "", "End this hold?", 1)
		}
	}
	term.send(t, "yes\n", "another hold followed", 1)
	check.Equal(t, "the hold that it has not shown is there", held(t, s, "asked"), true)
}

// At a terminal, run shows the connecting, then the holder and the time waited.
func TestRunShowsWait(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.Options{})
	holder := hold(t, at(s.Addr()), "shown", "--note", "holder")
	term := atTerminal(t, s, "", "run", "shown", "--", "sh", "-c", "echo en\"\"d")
	term.send(t, "", `note "holder", for`, 1)
	term.send(t, "", "waiting for shown for ", 2)
	holder.terminate(t)
	term.send(t, "", "end", 1)

	check.Must(t, s.Freeze())
	term = atTerminal(t, s, "", "run", "shown", "--connect-timeout", "1m", "--", "true")
	term.send(t, "", "connecting to "+s.Addr()+" for ", 2)
}

// At a terminal, check wraps at words.
func TestCheckWraps(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.Options{})
	term := atTerminalOf(t, s, 60, "", "check", "--strategy", "single")
	term.send(t, "", "release wakes the next", 1)
	term.send(t, "", "within", 1)
	for line := range strings.Lines(term.out.String()) {
		if len(strings.TrimRight(line, "\r\n")) > 60 {
			t.Errorf("%q", line)
		}
	}
}

// At a terminal, bench draws a bar for how far it is, and Ctrl-C ends it.
func TestBenchProgress(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.Options{})
	term := atTerminal(t, s, "", "bench", "--seconds", "1")
	term.send(t, "", "] hand-over", 1)
	check.Eventually(t, "it ends", func() bool { return check.Closed(term.ended) })
	term = atTerminal(t, s, "", "bench", "--seconds", "200")
	term.send(t, "", "#.", 1)
	term.send(t, "\x03", "^C", 1)
	check.Eventually(t, "Ctrl-C ends it", func() bool { return check.Closed(term.ended) })
	empty(t, s)
}

// At a terminal, ls prints a table, and top draws it again and again until Ctrl-C, the lock with most
// waiters first.
func TestListAndTopAtTerminal(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.Options{})
	env := at(s.Addr())
	must(t, env, "run", "alone", "--min-hold", "1h", "--", "true")
	holder := hold(t, env, "wanted", "--note", "holder")
	term := atTerminalOf(t, s, 120, "", "ls")
	term.send(t, "", "WAITING", 1)
	term.send(t, "", "released", 1)
	top := atTerminalOf(t, s, 120, "", "top", "--interval", "10ms")
	top.send(t, "", "2 locks, 0 waiting", 2)
	waiter := begin(t, env, "run", "wanted", "--", "true")
	top.send(t, "", "2 locks, 1 waiting", 2)
	_, screen, _ := strings.Cut(top.out.String(), "2 locks, 1 waiting")
	if wanted, alone := strings.Index(screen, "wanted"), strings.Index(screen, "alone"); wanted < 0 || alone < wanted {
		t.Errorf("the screen is %q", screen)
	}
	holder.terminate(t)
	waiter.end(t)
	top.send(t, "", "1 lock, 0 waiting", 1)
	check.Must(t, s.Kill())
	top.send(t, "", "connection refused", 1)
	top.send(t, "\x03", "^C", 1)
}
