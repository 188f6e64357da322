//go:build unix

package main

import (
	"encoding/json"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// The suite runs against a given server, over each client and strategy, and leaves no key.
func TestConformance(t *testing.T) {
	t.Parallel()
	plain := redistest.Start(t, redistest.Options{Password: "sesame"})
	secured := redistest.Start(t, redistest.Options{Password: "sesame", TLS: redistest.ServerTLS})
	password := "HOLDFAST_PASSWORD=sesame"
	tls := []string{"HOLDFAST_URL=rediss://" + secured.Addr(), password, "HOLDFAST_TLS_CA=" + caFile(t, secured)}
	const few = "^(acquire and release|a release wakes a waiter|a lost reply|.*cut.*|scripts may be flushed.*|.*is published.*)"
	for _, test := range []struct {
		name     string
		env      []string
		client   string
		strategy string
	}{
		{"plain", append(at(plain.Addr()), password), "goredis", "single"},
		{"plain", append(at(plain.Addr()), password), "redigo", "rwhash"},
		{"plain", append(at(plain.Addr()), password), "valkey", "semaphore:1"},
		{"TLS", tls, "rueidis", "reentrant"},
		{"TLS", tls, "goredis", "redisson"},
	} {
		t.Run(test.name+" "+test.client+" "+test.strategy, func(t *testing.T) {
			t.Parallel()
			out, errs, status := run(t, test.env, "conformance", "--json", "--run", few, "--client", test.client, "--strategy", test.strategy)
			lines := strings.Split(strings.TrimSpace(out), "\n")
			var sum summary
			if err := json.Unmarshal([]byte(lines[len(lines)-1]), &sum); err != nil {
				t.Fatalf("%v: %s%s", err, out, errs)
			}
			if status != 0 || errs != "" || sum.Passed < 2 || sum.Failed > 0 || sum.LeftOut == 0 || len(lines) != sum.Passed+sum.LeftOut+1 {
				t.Errorf("status %d: %s%s", status, out, errs)
			}
		})
	}
	t.Cleanup(func() {
		for _, s := range []*redistest.Server{plain, secured} {
			empty(t, s)
		}
	})
}

// A server that refuses renewals fails a case.
func TestConformanceFails(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.Options{})
	s.MustCommand(t, "ACL", "SETUSER", "brief", "on", ">sesame", "~*", "&*", "+@all", "-pexpire")
	out, errs, status := run(t, at("brief:sesame@"+s.Addr()), "conformance", "--run", "^renew never shortens$")
	if status != 1 || !strings.Contains(out, "failed    renew never shortens (contract 9)") ||
		!strings.Contains(out, "why this case: ") || !strings.Contains(out, "0 cases passed, 1 failed, 0 were left out") {
		t.Errorf("status %d: %s%s", status, out, errs)
	}
}

// A signal ends the suite, and its keys are removed.
func TestConformanceInterrupted(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.Options{})
	p := begin(t, at(s.Addr()), "conformance")
	p.line(t)
	check.Eventually(t, "cases run", func() bool { return s.MustCommand(t, "DBSIZE") != int64(0) })
	p.terminate(t)
	empty(t, s)
}

// A closed output pipe ends the suite by SIGPIPE, and its keys are removed.
func TestConformanceClosedPipe(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.Options{})
	read, write, err := os.Pipe()
	check.Must(t, err)
	cmd := command(t, at(s.Addr()), "conformance")
	cmd.Stdout = write
	check.Must(t, cmd.Start())
	_ = write.Close()
	_, _ = read.Read(make([]byte, 1))
	_ = read.Close()
	_ = cmd.Wait()
	check.Equal(t, "status", cmd.ProcessState.ExitCode(), 128+int(syscall.SIGPIPE))
	empty(t, s)
}
