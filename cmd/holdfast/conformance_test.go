//go:build unix

package main

import (
	"encoding/json"
	"os"
	"strings"
	"syscall"
	"testing"

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
			if n := s.MustCommand(t, "DBSIZE"); n != int64(0) {
				t.Errorf("it leaves %v", s.MustCommand(t, "KEYS", "*"))
			}
		}
	})
}

// A server that does not let locks be renewed fails a case.
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
	eventually(t, "cases run", func() bool { return s.MustCommand(t, "DBSIZE") != int64(0) })
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	if _, status := p.end(t); status != 128+15 {
		t.Errorf("status %d: %s", status, p.stderr)
	}
	if n := s.MustCommand(t, "DBSIZE"); n != int64(0) {
		t.Errorf("it leaves %v", s.MustCommand(t, "KEYS", "*"))
	}
}

// So does an output that nobody reads any more.
func TestConformanceClosedPipe(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.Options{})
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := command(t, at(s.Addr()), "conformance")
	cmd.Stdout = write
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = write.Close()
	_, _ = read.Read(make([]byte, 1))
	_ = read.Close()
	_ = cmd.Wait()
	if status := cmd.ProcessState.ExitCode(); status != 128+int(syscall.SIGPIPE) {
		t.Errorf("%v", cmd.ProcessState)
	}
	if n := s.MustCommand(t, "DBSIZE"); n != int64(0) {
		t.Errorf("it leaves %v", s.MustCommand(t, "KEYS", "*"))
	}
}

func TestConformanceErrors(t *testing.T) {
	t.Parallel()
	addr := shared.Get(t).Addr()
	for _, test := range []struct {
		name string
		env  []string
		args []string
		want int
	}{
		{"no server", at("127.0.0.1:1"), nil, statusUnreachable},
		{"a Cluster", []string{"HOLDFAST_URL=redis+cluster://" + addr}, nil, statusUsage},
		{"a quorum", []string{"HOLDFAST_NODES=redis://" + addr + ",redis://" + addr}, nil, statusUsage},
		{"a database", at(addr + "/1"), nil, statusUsage},
		{"a prefix", at(addr), []string{"--prefix", "p:"}, statusUsage},
		{"no expression", at(addr), []string{"--run", "("}, statusUsage},
		{"permits", at(addr), []string{"--strategy", "semaphore:2"}, statusUsage},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if out, errs, status := run(t, test.env, append([]string{"conformance"}, test.args...)...); status != test.want || out != "" || errs == "" {
				t.Errorf("status %d, want %d: %q, %q", status, test.want, out, errs)
			}
		})
	}
}
