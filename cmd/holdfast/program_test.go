package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/effort"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// asProgram in the environment makes the test binary the program.
const asProgram = "HOLDFAST_TEST_PROGRAM"

// withItsLimits in the environment of the program gives up a silent server as soon as for a user.
// Without it the program waits for an answer for as long as the test.
const withItsLimits = asProgram + "=with its limits"

var shared = redistest.Share(func(ctx context.Context) (*redistest.Server, error) {
	return redistest.Launch(ctx, redistest.Options{})
})

func TestMain(m *testing.M) {
	if program := os.Getenv(asProgram); program != "" {
		_ = os.Unsetenv(asProgram) // its own commands are not programs of ours
		if asProgram+"="+program != withItsLimits {
			answerTimeout, connectTimeout, dialTimeout, completeTimeout = patience, patience, patience, patience
			probeTimeout, attemptTimeout, readTimeout, closeTimeout = patience, patience, patience, patience
			slowRoundTrip = patience
		}
		main()
		return
	}
	probeTimeout = patience
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP) // under nohup, programs would ignore it like the tests
	goleak.VerifyTestMain(redistest.CloseAfter(m, shared))
}

// patience bounds the waits of a program for a server.
const patience = 5 * time.Minute

type program struct {
	cmd    *exec.Cmd
	stdout *bufio.Scanner
	stderr *check.Buffer
}

func command(t *testing.T, env []string, args ...string) *exec.Cmd {
	t.Helper()
	end, ok := t.Deadline()
	if !ok {
		end = time.Now().Add(time.Hour)
	}
	// A program that hangs is killed in time for its test to report it.
	ctx, cancel := context.WithDeadline(context.Background(), end.Add(-10*time.Second))
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, os.Args[0], args...)
	cmd.Env = append(os.Environ(), asProgram+"=1", "GORACE=atexit_sleep_ms=0")
	cmd.Env = append(cmd.Env, env...)
	return cmd
}

// begin starts the program with settings such as HOLDFAST_URL in its environment.
func begin(t *testing.T, env []string, args ...string) *program {
	t.Helper()
	p := prepare(t, env, args...)
	p.start(t)
	return p
}

func prepare(t *testing.T, env []string, args ...string) *program {
	t.Helper()
	p := &program{cmd: command(t, env, args...), stderr: new(check.Buffer)}
	p.cmd.Stderr = p.stderr
	// A process may outlive the program with its standard error.
	p.cmd.WaitDelay = time.Second
	return p
}

func (p *program) start(t *testing.T) {
	t.Helper()
	out, err := p.cmd.StdoutPipe()
	if err == nil {
		err = p.cmd.Start()
	}
	check.Must(t, err)
	p.stdout = bufio.NewScanner(out)
}

// line returns the next line of standard output.
func (p *program) line(t *testing.T) string {
	t.Helper()
	if !p.stdout.Scan() {
		t.Fatalf("the output has ended; standard error: %s", p.stderr)
	}
	return p.stdout.Text()
}

// end waits for the end of the program, and returns the rest of its output and its status.
func (p *program) end(t *testing.T) (rest string, status int) {
	t.Helper()
	var b strings.Builder
	for p.stdout.Scan() {
		b.WriteString(p.stdout.Text() + "\n")
	}
	_ = p.cmd.Wait()
	return b.String(), p.cmd.ProcessState.ExitCode()
}

// terminate sends SIGTERM, waits for the end, and returns the rest of the output.
func (p *program) terminate(t *testing.T) (rest string) {
	t.Helper()
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	rest, status := p.end(t)
	if status != 128+15 {
		t.Errorf("status %d: %s", status, p.stderr)
	}
	return rest
}

// loses waits for the end of a holder after it lost its lock.
func (p *program) loses(t *testing.T) {
	t.Helper()
	if _, status := p.end(t); status != statusLost {
		t.Errorf("the holder ends with %d: %s", status, p.stderr)
	}
}

// hold runs a command that holds a lock until the test ends, and returns once it does.
func hold(t *testing.T, env []string, args ...string) *program {
	t.Helper()
	p := begin(t, env, append(append([]string{"run"}, args...), "--", "sh", "-c", "echo ready; exec sleep 600")...)
	p.line(t)
	return p
}

// must demands success of the program, and returns its standard output.
func must(t *testing.T, env []string, args ...string) string {
	t.Helper()
	return ends(t, 0, env, args...)
}

// ends demands that status of the program, and returns its standard output.
func ends(t *testing.T, want int, env []string, args ...string) string {
	t.Helper()
	out, errs, status := run(t, env, args...)
	if status != want {
		t.Fatalf("%q: status %d, want %d: %s%s", args, status, want, out, errs)
	}
	return out
}

// says demands that status of the program, and text on its standard error; "": nothing there.
func says(t *testing.T, want int, text string, env []string, args ...string) (out, errs string) {
	t.Helper()
	out, errs, status := run(t, env, args...)
	if status != want || (text == "") != (errs == "") || !strings.Contains(errs, text) {
		t.Errorf("%q: status %d, standard error %q; want %d and %q; output %q", args, status, errs, want, text, out)
	}
	return out, errs
}

// empty fails the test if a server has a key.
func empty(t *testing.T, s *redistest.Server) {
	t.Helper()
	check.Equal(t, "keys that are left", fmt.Sprint(s.MustCommand(t, "KEYS", "*")), "[]")
}

func run(t *testing.T, env []string, args ...string) (stdout, stderr string, status int) {
	t.Helper()
	p := begin(t, env, args...)
	stdout, status = p.end(t)
	return stdout, p.stderr.String(), status
}

// at returns the environment with a server's URL.
func at(addr string) []string { return []string{"HOLDFAST_URL=redis://" + addr} }

// here returns the environment with the tests' shared server.
func here(t *testing.T) []string {
	t.Helper()
	return at(shared.Get(t).Addr())
}

// clientsFor returns one of clientNames, the i-th by turns, or all if effort.Full.
func clientsFor(i int) []string {
	all := clientNames()
	if effort.Full() {
		return all
	}
	return all[i%len(all):][:1]
}

// held reports whether the key of a lock is there.
func held(t *testing.T, s *redistest.Server, key string) bool {
	t.Helper()
	return s.MustCommand(t, "EXISTS", key) == int64(1)
}
