package redistest

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TB is the part of a test used by this package. *testing.T, *testing.B and *testing.F are TBs;
// others may implement it. Fatalf and Skipf must not return.
type TB interface {
	Helper()
	Name() string
	Logf(format string, args ...any)
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	Skipf(format string, args ...any)
	Failed() bool
	Cleanup(func())
	TempDir() string
	Context() context.Context
}

// serverVariable names the environment variable with the program to run.
const serverVariable = "HOLDFAST_REDIS_SERVER"

// program returns the path of the server program.
func program() (string, error) {
	name := os.Getenv(serverVariable)
	if name == "" {
		name = "redis-server"
	}
	return exec.LookPath(name)
}

// Available reports whether there is a server program to run.
func Available() bool {
	_, err := program()
	return err == nil
}

// Need skips the test if no server program is found, and fails it if the
// environment says CI=true. Start and its siblings call it.
func Need(tb TB) {
	tb.Helper()
	_, err := program()
	switch {
	case err == nil:
	case os.Getenv("CI") == "true":
		tb.Fatalf("redistest: CI=true, but there is no server to test with: %v", err)
	default:
		tb.Skipf("redistest: install redis-server or set %s to run this test: %v", serverVariable, err)
	}
}

// needMany is Need for a cluster, Sentinels or a quorum: -short leaves them out.
func needMany(tb TB) {
	tb.Helper()
	Need(tb)
	if testing.Short() {
		tb.Skipf("redistest: -short leaves out what needs several servers")
	}
}

// node is the part of a Server, a Cluster or a Sentinel needed by start.
type node interface {
	Close() error
	Log() string
}

// start launches something for one test and closes it after the test.
func start[T node](tb TB, launch func(context.Context) (T, error)) T {
	tb.Helper()
	Need(tb)
	n, err := launch(tb.Context())
	if err != nil {
		tb.Fatalf("%v", err)
	}
	tb.Cleanup(func() {
		if tb.Failed() {
			tb.Logf("server log of %s:\n%s", tb.Name(), tail(n.Log()))
		}
		if err := n.Close(); err != nil {
			tb.Errorf("redistest: close: %v", err)
		}
	})
	return n
}

// tail is the end of a log: in a whole log a test's own report of its failure would be hard to
// find.
func tail(log string) string {
	const lines, omitted = 40, "(the lines before are left out)"
	all := strings.Split(strings.TrimRight(log, "\n"), "\n")
	if len(all) > lines {
		all = append([]string{omitted}, all[len(all)-lines:]...)
	}
	return strings.Join(all, "\n")
}
