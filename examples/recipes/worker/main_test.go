//go:build unix

package main

import (
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/holdfast-go/holdfast/examples/internal/program"
	"github.com/holdfast-go/holdfast/internal/check"
)

func TestMain(m *testing.M) { program.TestMain(m, main) }

// SIGTERM ends the wait for the lock at once. A working worker finishes, and releases the lock: the
// next one does not wait for the lease to end.
func TestTermination(t *testing.T) {
	t.Parallel()
	server := miniredis.RunT(t)
	args := []string{"-redis", "redis://" + server.Addr(), "-ttl", "1h", "-usual", "300ms"}
	first := program.Start(t, args...)
	first.ReadUntil(t, "works 1")
	second, third := program.Start(t, args...), program.Start(t, args...)
	address := strings.TrimPrefix(strings.TrimSpace(second.ReadUntil(t, "probes")), "probes ")
	third.ReadUntil(t, "probes")

	rest := first.Stop(t, syscall.SIGTERM)
	if strings.Count(rest, "works") != strings.Count(rest, "done")-1 || strings.Contains(rest, "failed") {
		t.Errorf("it stopped in the middle of its work:\n%s", rest)
	}
	second.ReadUntil(t, "works")
	if rest := third.Stop(t, syscall.SIGTERM); strings.Contains(rest, "failed") {
		t.Errorf("a worker that waited: %s", rest)
	}

	server.Close() // neither probe depends on the lock server
	for _, path := range []string{"/livez", "/readyz"} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+path, http.NoBody)
		check.Must(t, err)
		req.Close = true // it keeps no connection
		resp, err := http.DefaultClient.Do(req)
		check.Must(t, err)
		_ = resp.Body.Close()
		check.Equal(t, path+" without a lock server", resp.StatusCode, http.StatusOK)
	}
	check.Must(t, server.Restart())
	second.Stop(t, syscall.SIGTERM)
}

// An error that waiting cannot fix fails a turn at once, and the next one after a pause.
func TestFailures(t *testing.T) {
	t.Parallel()
	server := miniredis.RunT(t)
	server.RequireAuth("secret")
	began := time.Now()
	worker := program.Start(t, "-redis", "redis://"+server.Addr())
	worker.ReadUntil(t, "turn 2 failed")
	check.AtLeast(t, "time until it had failed twice", time.Since(began), pause)
	worker.Stop(t, syscall.SIGTERM)
}

func TestWrongUse(t *testing.T) {
	t.Parallel()
	program.Misused(t, "stray")
	program.Fails(t, "worker", "invalid URL scheme", "-redis", "http://127.0.0.1:1")
}
