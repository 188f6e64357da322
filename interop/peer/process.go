package peer

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
)

// Patience bounds the wait for an answer. A peer that waits for longer was not woken.
const Patience = 3 * time.Minute

// Command starts a peer: a program, its arguments, and additions to the environment.
type Command struct {
	Args, Env []string
}

// With returns the command with more arguments.
func (c Command) With(args ...string) Command {
	c.Args = append(slices.Clip(c.Args), args...)
	return c
}

// Process is a running peer. It serves one test, and one command at a time.
type Process struct {
	tb     testing.TB
	cmd    *exec.Cmd
	in     io.WriteCloser
	lines  chan string // closed when the process has ended
	stderr check.Buffer
}

// Start starts a peer and waits until it is ready. It is killed when the test ends.
func Start(tb testing.TB, c Command) *Process {
	tb.Helper()
	p := &Process{tb: tb, cmd: exec.Command(c.Args[0], c.Args[1:]...), lines: make(chan string, 1)}
	p.cmd.Env = append(os.Environ(), c.Env...)
	p.cmd.Stderr = &p.stderr
	var err error
	p.in, err = p.cmd.StdinPipe()
	check.Must(tb, err)
	out, err := p.cmd.StdoutPipe()
	check.Must(tb, err)
	check.Must(tb, p.cmd.Start())
	go p.read(out)
	tb.Cleanup(func() {
		p.Kill()
		if tb.Failed() {
			tb.Logf("%q wrote:\n%s", c.Args, p.stderr.String())
		}
	})
	if line := p.line(); line != "ready" {
		tb.Fatalf("%q is not ready: %q", c.Args, line)
	}
	return p
}

// read reads the answers until the process ends.
func (p *Process) read(out io.Reader) {
	defer close(p.lines)
	for lines := bufio.NewScanner(out); lines.Scan(); {
		p.lines <- lines.Text()
	}
}

// line returns the next line of the peer.
func (p *Process) line() string {
	p.tb.Helper()
	select {
	case line, ok := <-p.lines:
		if !ok {
			p.tb.Fatalf("%q ended", p.cmd.Args)
		}
		return line
	case <-time.After(Patience):
		p.tb.Fatalf("%q has not answered for %v", p.cmd.Args, Patience)
		return ""
	}
}

// Send sends a command. Answer returns its answer.
func (p *Process) Send(words ...any) {
	p.tb.Helper()
	_, err := fmt.Fprintln(p.in, words...)
	check.Must(p.tb, err)
}

// Answer waits for the answer to the last command.
func (p *Process) Answer() Answer {
	p.tb.Helper()
	a, err := parse(p.line())
	check.Must(p.tb, err)
	return a
}

// Do sends a command and returns its answer.
func (p *Process) Do(words ...any) Answer {
	p.tb.Helper()
	p.Send(words...)
	return p.Answer()
}

// Kill kills the process and waits until it is gone.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill() // it may be gone
	for range p.lines {      // until it has ended
	}
	_ = p.cmd.Wait() // killed
}
