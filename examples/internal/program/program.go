// Package program runs an example as a user does, from the example's own tests: the test binary
// becomes the program.
package program

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast/locker"
)

const (
	asProgram = "HOLDFAST_EXAMPLE"
	deadline  = 2 * time.Minute
)

// TestMain runs main if this process was started by Run or Start, else the tests.
func TestMain(m *testing.M, main func()) {
	if os.Getenv(asProgram) != "" {
		main()
		return
	}
	goleak.VerifyTestMain(m)
}

func command(t *testing.T, args []string) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, os.Args[0], args...) //nolint:gosec // this very binary
	cmd.Env = append(os.Environ(), asProgram+"=1")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	return cmd, &stderr
}

// Run runs the program to its end.
func Run(t *testing.T, args ...string) (stdout, stderr string, status int) {
	t.Helper()
	cmd, errs := command(t, args)
	var out bytes.Buffer
	cmd.Stdout = &out
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// MustRun runs a program, expects it to succeed, and returns its output.
func MustRun(t *testing.T, args ...string) string {
	t.Helper()
	out, errs, status := Run(t, args...)
	if status != 0 || errs != "" {
		t.Fatalf("status %d, standard error %q, output:\n%s", status, errs, out)
	}
	return out
}

// Prints expects the program to succeed and print want.
func Prints(t *testing.T, want string) {
	t.Helper()
	if out := MustRun(t); out != want {
		t.Errorf("it printed\n%s\nwant\n%s", out, want)
	}
}

// PrintsInFakeTime runs f in a bubble of testing/synctest, and expects it to print want. No test that
// prints may run beside it.
func PrintsInFakeTime(t *testing.T, want string, f func(t *testing.T)) {
	t.Helper()
	stdout := os.Stdout
	defer func() { os.Stdout = stdout }()
	file := locker.Must(os.Create(filepath.Join(t.TempDir(), "out")))
	defer file.Close()
	os.Stdout = file
	synctest.Test(t, func(t *testing.T) {
		t.Cleanup(func() { <-time.After(time.Minute) }) // fake time, for what goes on in the background
		f(t)
	})
	if out, err := os.ReadFile(file.Name()); err != nil || string(out) != want {
		t.Errorf("it printed\n%s\nwant\n%s", out, want)
	}
}

// Fails expects the program to end with status 1 and one line on standard error: it begins with the
// example's name and has want in it. Fails returns the standard output.
func Fails(t *testing.T, name, want string, args ...string) string {
	t.Helper()
	out, errs, status := Run(t, args...)
	if status != 1 || strings.Count(errs, "\n") != 1 || !strings.HasPrefix(errs, name+": ") || !strings.Contains(errs, want) {
		t.Errorf("%v: status %d, standard error %q; want status 1 and one line with %q", args, status, errs, want)
	}
	return out
}

// Misused expects the program to refuse its arguments with a hint.
func Misused(t *testing.T, args ...string) {
	t.Helper()
	if out, errs, status := Run(t, args...); status != 2 || errs == "" || out != "" {
		t.Errorf("%v: status %d, output %q, standard error %q; want 2 and a hint", args, status, out, errs)
	}
}

// Running is a running program.
type Running struct {
	cmd    *exec.Cmd
	errs   *bytes.Buffer
	stdout *bufio.Scanner
}

// Start starts the program.
func Start(t *testing.T, args ...string) *Running {
	t.Helper()
	cmd, errs := command(t, args)
	pipe, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	return &Running{cmd, errs, bufio.NewScanner(pipe)}
}

// ReadUntil returns the program's output up to the line that begins with prefix.
func (r *Running) ReadUntil(t *testing.T, prefix string) string {
	t.Helper()
	var text strings.Builder
	for r.stdout.Scan() {
		text.WriteString(r.stdout.Text() + "\n")
		if strings.HasPrefix(r.stdout.Text(), prefix) {
			return text.String()
		}
	}
	t.Fatalf("the program ended (%v) before it printed %q:\n%s", r.cmd.Wait(), prefix, text.String()+r.errs.String())
	return ""
}

// Interrupt interrupts the program, and expects it to succeed.
func (r *Running) Interrupt(t *testing.T) {
	t.Helper()
	r.Stop(t, os.Interrupt)
}

// Stop sends sig to the program, expects it to succeed, and returns the rest of its output.
func (r *Running) Stop(t *testing.T, sig os.Signal) string {
	t.Helper()
	if err := r.cmd.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for r.stdout.Scan() { // to its end, before Wait closes the pipe
		text.WriteString(r.stdout.Text() + "\n")
	}
	if err := r.cmd.Wait(); err != nil || r.errs.Len() > 0 {
		t.Errorf("after %v: %v, standard error %q", sig, err, r.errs)
	}
	return text.String()
}
