//go:build unix

package main

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/effort"
	"github.com/holdfast-go/holdfast/internal/faultproxy"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// lookers are the commands that ask about locks.
var lookers = [][]string{{"who", "fault"}, {"watch", "fault"}, {"ls"}, {"release", "--force", "fault"}}

// A silent server ends each command but watch with status 69. By default who and watch are tried.
func TestLookFrozenServer(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.Options{})
	check.Must(t, s.Freeze())
	for i, args := range append(slices.Clone(lookers), []string{"run", "--no-wait", "fault", "--", "true"}, []string{"check"}) {
		if i > 1 && !effort.Full() {
			break
		}
		for _, client := range clientsFor(i) {
			env := append(at(s.Addr()), withItsLimits, "HOLDFAST_CLIENT="+client)
			t.Run(client+"/"+args[0], func(t *testing.T) {
				t.Parallel()
				p := begin(t, env, args...)
				if args[0] == "watch" {
					check.Eventually(t, "watch reports the outage", func() bool { return strings.Contains(p.stderr.String(), "fault") })
					_ = p.cmd.Process.Signal(syscall.SIGTERM)
					if _, status := p.end(t); status != 0 {
						t.Errorf("status %d: %s", status, p.stderr)
					}
					return
				}
				out, status := p.end(t)
				if said := out + p.stderr.String(); status != statusUnreachable || client != "redigo" && !strings.Contains(said, s.Addr()) {
					t.Errorf("status %d, %q: %s", status, out, p.stderr)
				}
			})
		}
	}
}

// SIGPIPE ends a command with an unread output, as in a pipeline. A release has been made by then.
func TestLookClosedPipe(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.Options{})
	must(t, at(s.Addr()), "run", "fault", "--min-hold", "1h", "--", "true")
	for _, args := range lookers {
		r, w, err := os.Pipe()
		check.Must(t, err)
		_ = r.Close()
		cmd := command(t, at(s.Addr()), args...)
		cmd.Stdout = w
		_ = cmd.Run()
		_ = w.Close()
		if ws, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || ws.Signal() != syscall.SIGPIPE {
			t.Errorf("%q: %v", args, cmd.ProcessState)
		}
	}
	check.Equal(t, "the lock is held", held(t, s, "fault"), false)
}

// A full output is a failure, and not one of the server.
func TestFullOutput(t *testing.T) {
	t.Parallel()
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil && runtime.GOOS != "linux" {
		t.Skip(err)
	} else if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = full.Close() })
	env := here(t)
	must(t, env, "run", "full", "--min-hold", "1h", "--", "true")
	for _, args := range [][]string{
		{"who", "full"}, {"who", "full", "--json"}, {"watch", "full"}, {"ls", "full"}, {"check"}, {"check", "--json"},
		{"bench", "--seconds", "1"}, {"conformance", "--run", "^one holder at a time$"}, {"release", "--force", "full"},
	} {
		cmd := command(t, env, args...)
		cmd.Stdout = full
		_ = cmd.Run()
		check.Equal(t, fmt.Sprintf("status of %q", args), cmd.ProcessState.ExitCode(), statusFailed)
	}
}

// bench and conformance refuse impossible arguments before they do anything.
func TestRefused(t *testing.T) {
	t.Parallel()
	addr := shared.Get(t).Addr()
	frozen := faultproxy.Start(t, addr)
	frozen.Freeze()
	type test struct {
		env  []string
		args []string
		want int
	}
	check.Each(t, map[string]test{
		"bench, no server":             {at("127.0.0.1:1"), []string{"bench", "--connect-timeout", "300ms"}, statusUnreachable},
		"bench, frozen server":         {at(frozen.Addr()), []string{"bench", "--connect-timeout", "300ms"}, statusUnreachable},
		"bench, no time":               {at(addr), []string{"bench", "--seconds", "0"}, statusUsage},
		"bench, one goroutine":         {at(addr), []string{"bench", "--goroutines", "1"}, statusUsage},
		"bench, no such strategy":      {at(addr), []string{"bench", "--strategy", "multi"}, statusUsage},
		"conformance, no server":       {at("127.0.0.1:1"), []string{"conformance"}, statusUnreachable},
		"conformance, a Cluster":       {[]string{"HOLDFAST_URL=redis+cluster://" + addr}, []string{"conformance"}, statusUsage},
		"conformance, a quorum":        {[]string{"HOLDFAST_NODES=redis://" + addr + ",redis://" + addr}, []string{"conformance"}, statusUsage},
		"conformance, a database":      {at(addr + "/1"), []string{"conformance"}, statusUsage},
		"conformance, a prefix":        {at(addr), []string{"conformance", "--prefix", "p:"}, statusUsage},
		"conformance, no expression":   {at(addr), []string{"conformance", "--run", "("}, statusUsage},
		"conformance, no case":         {at(addr), []string{"conformance", "--run", "typo"}, statusUsage},
		"conformance, several permits": {at(addr), []string{"conformance", "--strategy", "semaphore:2"}, statusUsage},
	}, func(t *testing.T, test test) {
		if out, errs, status := run(t, append(test.env, withItsLimits), test.args...); status != test.want || out != "" || errs == "" {
			t.Errorf("status %d, want %d: %q, %q", status, test.want, out, errs)
		}
	})
}

// The status of a command and the error of the release behind it are printed as one line.
func TestTextOfStatusAndError(t *testing.T) {
	t.Parallel()
	err := errors.Join(&statusError{status: 5}, errors.New("holdfast: no answer"))
	check.Equal(t, "text", errorText("run", err), "holdfast: no answer")
	check.Equal(t, "status", statusOf(err), 5)
}

// A release without an answer is reported, and changes no status: the lock was held while the
// command ran.
func TestReleaseFrozenServer(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		command string
		status  int
	}{{"run", 0}, {"leader", 0}, {"leader", 5}} {
		t.Run(fmt.Sprint(test.command, " ", test.status), func(t *testing.T) {
			t.Parallel()
			proxy := faultproxy.Start(t, shared.Get(t).Addr())
			fifo := newFIFO(t)
			p := begin(t, append(at(proxy.Addr()), withItsLimits, "FIFO="+fifo), test.command,
				"unreleased:"+t.Name(), "--connect-timeout", "5m", "--ttl", "1h", "--", "sh", "-c",
				fmt.Sprintf(`echo ready; read x <"$FIFO"; exit %d`, test.status))
			p.line(t)
			proxy.Freeze()
			check.Must(t, os.WriteFile(fifo, []byte("x\n"), 0o600))
			_, status := p.end(t)
			if said := p.stderr.String(); status != test.status || !strings.Contains(said, "release ") {
				t.Errorf("status %d, want %d; standard error %q", status, test.status, said)
			}
		})
	}
}
