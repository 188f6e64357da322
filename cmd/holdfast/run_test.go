//go:build unix

package main

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/faultproxy"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lockertest"
)

func TestRunStatus(t *testing.T) {
	t.Parallel()
	s := shared.Get(t)
	s.MustCommand(t, "SET", "status:held", "other", "PX", 3_600_000)
	s.MustCommand(t, "HSET", "status:hash", "a", "b")
	plain, blank := filepath.Join(t.TempDir(), "plain"), filepath.Join(t.TempDir(), "blank")
	check.Must(t, errors.Join(os.WriteFile(plain, nil, 0o600), os.WriteFile(blank, []byte("\n"), 0o600)))
	locked := redistest.Start(t, redistest.Options{Password: "sesame"})
	const nowhere = "HOLDFAST_NODES=redis://127.0.0.1:1"
	tests := []struct {
		name string
		env  []string // HOLDFAST_URL of the shared server if empty
		args []string
		want int
		says string // on standard error; "" means nothing
	}{
		{name: "success", args: []string{"status:1", "--", "true"}},
		{name: "own status", args: []string{"status:2", "--", "sh", "-c", "exit 7"}, want: 7},
		{name: "own signal", args: []string{"status:3", "--", "sh", "-c", "kill -KILL $$"}, want: 128 + 9},
		{name: "own interrupt, without a terminal", args: []string{"status:3i", "--", "sh", "-c", "kill -INT $$"}, want: 128 + 2},
		{name: "flags before the name", args: []string{"--ttl", "1m", "status:4", "--", "true"}},
		{name: "flags of the command", args: []string{"status:5", "--", "sh", "-c", `test "$1" = --ttl`, "sh", "--ttl"}},
		{name: "dash before the name", args: []string{"--no-wait", "--", "-status", "--", "true"}},
		{name: "dash before the name, no second dashes", args: []string{"--", "-status", "true"}, want: 64, says: "--"},
		{name: "dash before the name, no command", args: []string{"--", "-status", "--"}, want: 64, says: "--"},
		{name: "dash before the name, flags behind", args: []string{"--", "-status", "--no-wait", "--", "true"}, want: 64, says: "--"},
		{name: "held", args: []string{"status:held", "--no-wait", "--", "true"}, want: 75, says: "held by another"},
		{name: "held, with a bound", args: []string{"status:held", "--no-wait", "--max-wait", "1m", "--", "true"}, want: 75, says: "held by another"},
		{name: "held, with its own status", args: []string{"status:held", "--no-wait", "--held-status", "0", "--", "true"}},
		{name: "no status", args: []string{"a", "--held-status", "256", "--", "true"}, want: 64, says: "--held-status"},
		{name: "another type", args: []string{"status:hash", "--", "true"}, want: 70, says: "of another type"},
		{name: "not found", args: []string{"status:6", "--", "no-such-program"}, want: 127, says: "not found"},
		{name: "not a program", args: []string{"status:7", "--", plain}, want: 126, says: "permission denied"},
		{name: "no server", env: at("127.0.0.1:1"), args: []string{"a", "--connect-timeout", "1s", "--", "true"}, want: 69, says: "no answer from 127.0.0.1:1"},
		{name: "no server, and a name like a refusal", env: at("127.0.0.1:1"), args: []string{"NOAUTH job", "--connect-timeout", "1s", "--", "true"}, want: 69, says: "no answer from 127.0.0.1:1"},
		{name: "no server for long", env: at("127.0.0.1:1"), args: []string{"a", "--max-wait", "1s", "--connect-timeout", "1h", "--", "true"}, want: 69, says: "no answer from 127.0.0.1:1"},
		{name: "no password", env: at(locked.Addr()), args: []string{"a", "--", "true"}, want: 77, says: "login refused"},
		{name: "no password, and a command of many words", env: at(locked.Addr()), args: []string{"a", "--fenced", "--", "true"}, want: 77, says: "login refused"},
		{name: "wrong password", env: at(":guess@" + locked.Addr()), args: []string{"a", "--", "true"}, want: 77, says: "WRONGPASS"},
		{name: "password in the URL", env: at(":sesame@" + locked.Addr()), args: []string{"a", "--", "true"}},
		{name: "password in an argument", env: []string{}, args: []string{"a", "--url", "redis://:sesame@" + locked.Addr(), "--", "true"}, want: 64, says: "every user of this machine can read"},
		{name: "password of a node in an argument", env: []string{}, args: []string{"a", "--nodes", "redis://h,redis://:sesame@h", "--", "true"}, want: 64, says: "every user of this machine can read"},
		{name: "empty password file", env: append(at(locked.Addr()), "HOLDFAST_PASSWORD_FILE="+plain), args: []string{"a", "--", "true"}, want: 64, says: plain + " has no password"},
		{name: "blank password file", args: []string{"a", "--password-file", blank, "--", "true"}, want: 64, says: blank + " has no password"},
		{name: "two variables", env: append(at(s.Addr()), nowhere), args: []string{"a", "--", "true"}, want: 64, says: "HOLDFAST_URL or HOLDFAST_NODES, not both"},
		{name: "two variables, and --url", env: append(at("127.0.0.1:1"), nowhere), args: []string{"status:8", "--url", "redis://" + s.Addr(), "--", "true"}},
		{name: "two variables, and --nodes", env: append(at("127.0.0.1:1"), nowhere), args: []string{"status:9", "--nodes", "redis://" + s.Addr(), "--", "true"}},
		{name: "no command", args: []string{"a"}, want: 64, says: "--"},
		{name: "no dashes", args: []string{"a", "true"}, want: 64, says: "--"},
		{name: "two names", args: []string{"a", "b", "--", "true"}, want: 64, says: "one name"},
		{name: "unknown flag", args: []string{"a", "--nope", "--", "true"}, want: 64, says: "--nope"},
		{name: "no duration", args: []string{"a", "--ttl", "soon", "--", "true"}, want: 64, says: "--ttl"},
		{name: "short TTL", args: []string{"a", "--ttl", "1ns", "--", "true"}, want: 64, says: "--ttl 1ns"},
		{name: "empty name", args: []string{"", "--", "true"}, want: 64, says: "NAME"},
		{name: "on-lost", args: []string{"a", "--on-lost", "panic", "--", "true"}, want: 64, says: "kill or warn"},
		{name: "negative wait", args: []string{"a", "--max-wait", "-1s", "--", "true"}, want: 64, says: "--max-wait"},
		{name: "strategy", args: []string{"a", "--strategy", "multi", "--", "true"}, want: 64, says: "single, reentrant"},
		{name: "shared single", args: []string{"a", "--shared", "--strategy", "single", "--", "true"}, want: 64, says: "rwhash"},
		{name: "client", args: []string{"a", "--client", "hiredis", "--", "true"}, want: 64, says: "goredis, redigo, rueidis, valkey"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			env := test.env
			if env == nil {
				env = at(s.Addr())
			}
			_, errs := says(t, test.want, test.says, env, append([]string{"run"}, test.args...)...)
			if strings.Contains(errs, "sesame") || strings.Contains(errs, "guess") {
				t.Errorf("standard error has the password: %s", errs)
			}
		})
	}
}

// The command gets the name and the increasing fencing token, and no token of an outer lock.
func TestRunEnvironment(t *testing.T) {
	t.Parallel()
	env := here(t)
	last := int64(0)
	for range 2 {
		out, errs, status := run(t, env, "run", "environment", "--fenced", "--", "sh", "-c", `echo "$HOLDFAST_NAME" "$HOLDFAST_FENCE"`)
		name, token, _ := strings.Cut(strings.TrimSpace(out), " ")
		n, err := strconv.ParseInt(token, 10, 64)
		if status != 0 || name != "environment" || err != nil || n <= last {
			t.Errorf("status %d, output %q after token %d: %s", status, out, last, errs)
		}
		last = n
	}
	out, errs, _ := run(t, append(env, "HOLDFAST_FENCE=5", "HOLDFAST_NAME=outer"), "run", "environment", "--", "sh", "-c",
		`echo "$HOLDFAST_NAME" "${HOLDFAST_FENCE-none}"`)
	if out != "environment none\n" {
		t.Errorf("%q: %s", out, errs)
	}
}

// Each strategy, and a quorum, lock and release.
func TestRunStrategies(t *testing.T) {
	t.Parallel()
	s := shared.Get(t)
	nodes := redistest.StartN(t, 2, redistest.Options{})
	quorum := []string{"HOLDFAST_NODES=redis://" + s.Addr() + ", redis://" + nodes[0].Addr() + " ,redis://" + nodes[1].Addr()}
	for _, test := range []struct {
		name string
		env  []string
		args []string
		more bool // a second one gets in
	}{
		{name: "single"},
		{name: "prefix", args: []string{"--prefix", "lock:"}},
		{name: "reentrant", args: []string{"--strategy", "reentrant"}},
		{name: "reentrant, by its owner", args: []string{"--strategy", "reentrant", "--owner", "me"}, more: true},
		{name: "rwhash", args: []string{"--strategy", "rwhash"}},
		{name: "shared", args: []string{"--shared"}, more: true},
		{name: "redisson", args: []string{"--strategy", "redisson"}},
		{name: "semaphore:1", args: []string{"--strategy", "semaphore:1"}},
		{name: "semaphore:2", args: []string{"--strategy", "semaphore:2"}, more: true},
		{name: "quorum", env: quorum},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			env := test.env
			if env == nil {
				env = at(s.Addr())
			}
			args := append([]string{"strategies:" + test.name, "--no-wait"}, test.args...)
			p, want := hold(t, env, args...), 0
			if !test.more {
				want = statusHeld
			}
			again := append(append([]string{"run"}, args...), "--", "true")
			ends(t, want, env, again...)
			p.terminate(t)
			must(t, env, again...)
		})
	}
}

// A quorum needs a majority of its nodes.
func TestRunQuorumOutage(t *testing.T) {
	t.Parallel()
	nodes := redistest.StartN(t, 2, redistest.Options{})
	url := func(addrs ...string) []string {
		return []string{"HOLDFAST_NODES=redis://" + strings.Join(addrs, ",redis://")}
	}
	for _, name := range clientsFor(0) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := "HOLDFAST_CLIENT=" + name
			must(t, append(url(nodes[0].Addr(), nodes[1].Addr(), "127.0.0.1:1"), client), "run", "quorum", "--", "true")
			ends(t, statusUnreachable, append(url(nodes[0].Addr(), "127.0.0.1:1", "127.0.0.1:2"), client, withItsLimits),
				"run", "--connect-timeout", "300ms", "quorum", "--", "true")
		})
	}
}

// A command that cannot be started frees the name at once: another may run it.
func TestRunMinHoldOfNothing(t *testing.T) {
	t.Parallel()
	env := at(redistest.Start(t, redistest.Options{}).Addr()) // with -count, the name would be taken the second time
	script := filepath.Join(t.TempDir(), "script")
	check.Must(t, os.WriteFile(script, []byte("#!/no/such/interpreter\n"), 0o700))
	try := []string{"run", "nothing", "--no-wait", "--min-hold", "1m", "--"}
	ends(t, statusCannotRun, env, append(try, script)...)
	must(t, env, append(try, "true")...)
}

func TestRunLost(t *testing.T) {
	t.Parallel()
	s := shared.Get(t)
	const stubborn = `trap '' TERM; (trap '' TERM; while :; do sleep 0.1; done) & echo ready; while :; do sleep 0.1; done`
	for _, test := range []struct {
		name, script string
		args         []string
		want         int
		says, out    string
		deleted      bool // its holder learns of it at the release
	}{
		{"kill", `trap 'echo term; exit 4' TERM; echo ready; while :; do sleep 0.1; done`, []string{"--grace", "5m"}, 79, "was lost", "term\n", false},
		{"stubborn", stubborn, []string{"--grace", "200ms"}, 79, "killing it", "", false},
		{"no grace", stubborn, []string{"--grace", "0s"}, 79, "was lost", "", false},
		{"warn", `trap 'echo term' TERM; echo ready; read x <"$FIFO"; exit 4`, []string{"--on-lost", "warn"}, 4, "the command goes on", "", false},
		{"noticed at the release", `echo ready; read x <"$FIFO"`, []string{"--ttl", "1h"}, 79, "was lost", "", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			name := "lost:" + test.name
			fifo := newFIFO(t)
			// Open for both, it does not wait for the command: it may have ended after the loss.
			lines := locker.Must(os.OpenFile(fifo, os.O_RDWR, 0))
			t.Cleanup(func() { _ = lines.Close() })
			args := append([]string{"run", name}, test.args...)
			p := begin(t, append(at(s.Addr()), "FIFO="+fifo), append(args, "--", "sh", "-c", test.script)...)
			p.line(t)
			if test.deleted {
				s.MustCommand(t, "DEL", name)
			} else {
				must(t, at(s.Addr()), "release", "--force", name)
			}
			switch test.name {
			case "warn":
				check.Eventually(t, "it warns", func() bool { return strings.Contains(p.stderr.String(), test.says) })
				fallthrough
			case "noticed at the release":
				locker.Must(lines.WriteString("x\n"))
			}
			rest, status := p.end(t)
			said := p.stderr.String()
			if status != test.want || rest != test.out || !strings.Contains(said, test.says) || strings.Count(said, "was lost") != 1 {
				t.Errorf("status %d, output %q, standard error %q", status, rest, said)
			}
		})
	}
}

// A loss is reported once, by supervise or else by release: a command may end before supervise has
// noticed the loss, for example while holdfast is stopped.
func TestRunLostUnnoticed(t *testing.T) {
	t.Parallel()
	type test struct {
		onLost   string
		reported bool
		want     int
	}
	check.EachInFakeTime(t, map[string]test{
		"kill":           {"kill", false, statusLost},
		"warn":           {"warn", false, 4},
		"kill, reported": {"kill", true, 4},
		"warn, reported": {"warn", true, 4},
	}, func(t *testing.T, test test) {
		lock := locker.Must(lockertest.New().Acquire(t.Context(), locker.Request{Name: "unnoticed"}))
		check.Advance(lock.TTL() + time.Second)
		f, status := runFlags{commandFlags: commandFlags{onLost: test.onLost}}, 4
		err := f.release(lock, test.reported, &status)
		check.Equal(t, "status", status, test.want)
		check.Equal(t, "release reports the loss", errors.Is(err, locker.ErrLost), !test.reported)
	})
}

// If holdfast is killed, its command dies too if the kernel supports it, and the lock stays for its
// TTL.
func TestRunKilled(t *testing.T) {
	t.Parallel()
	s := shared.Get(t)
	p := begin(t, at(s.Addr()), "run", "killed", "--ttl", "1h", "--", "sh", "-c", `echo $$; exec sleep 600`)
	line := p.line(t)
	pid := locker.Must(strconv.Atoi(line))
	check.Must(t, p.cmd.Process.Kill())
	if runtime.GOOS == "linux" { // there the first process of a container need not wait for it
		check.Eventually(t, "the command dies", func() bool { state := stateOf(line); return state == "" || state == "Z" })
	} else {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	p.end(t)
	if left, _ := s.MustCommand(t, "PTTL", "killed").(int64); left <= 0 || left > 3_600_000 {
		t.Errorf("the lock has %d ms left", left)
	}
}

// A closed standard error does not end holdfast before its command.
func TestRunClosedPipe(t *testing.T) {
	t.Parallel()
	s := shared.Get(t)
	read, write, err := os.Pipe()
	check.Must(t, err)
	cmd := command(t, at(s.Addr()), "run", "closed", "--", "sh", "-c", "echo ready; exec sleep 600")
	cmd.Stderr = write
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	check.Must(t, err)
	_ = write.Close()
	_ = read.Close()
	_, _ = out.Read(make([]byte, 16))
	must(t, at(s.Addr()), "release", "--force", "closed")
	_ = cmd.Wait()
	check.Equal(t, "status", cmd.ProcessState.ExitCode(), statusLost)
}

func TestRunTargets(t *testing.T) {
	t.Parallel()
	secured := redistest.Start(t, redistest.Options{Password: "sesame", TLS: redistest.ServerTLS})
	dir := t.TempDir()
	socket := filepath.Join(dir, "s") // its path is limited to about 100 bytes
	redistest.Start(t, redistest.Options{Args: []string{"--unixsocket", socket}})
	file := filepath.Join(dir, "password")
	check.Must(t, os.WriteFile(file, []byte("sesame\n"), 0o600))
	type kindOf struct {
		name string
		env  []string
	}
	kinds := []kindOf{
		{"TLS", []string{"HOLDFAST_URL=rediss://" + secured.Addr() + "/2", "HOLDFAST_PASSWORD=sesame", "HOLDFAST_TLS_CA=" + caFile(t, secured)}},
		{"password file", []string{"HOLDFAST_URL=rediss://" + secured.Addr(), "HOLDFAST_PASSWORD_FILE=" + file, "HOLDFAST_TLS_CA=" + caFile(t, secured)}},
		{"socket", []string{"HOLDFAST_URL=unix://" + socket + "?db=1"}},
	}
	if !testing.Short() {
		c := redistest.StartCluster(t, 3, redistest.Options{})
		s := redistest.StartSentinel(t, redistest.Options{})
		kinds = append(kinds,
			kindOf{"Cluster", []string{"HOLDFAST_URL=redis+cluster://" + strings.Join(c.Addrs(), ",")}},
			kindOf{"Sentinel", []string{"HOLDFAST_URL=redis+sentinel://" + strings.Join(s.SentinelAddrs(), ",") + "/" + s.MasterName()}},
		)
	}
	for i, k := range kinds {
		for _, client := range clientsFor(i) {
			t.Run(k.name+" "+client, func(t *testing.T) {
				t.Parallel()
				out, _ := says(t, 0, "", append(k.env, "HOLDFAST_CLIENT="+client), "run", "targets:"+client, "--", "echo", "ran")
				check.Equal(t, "output", out, "ran\n")
			})
		}
	}
}

// The error of a silent server says whether the URL is wrong about TLS.
func TestWrongScheme(t *testing.T) {
	t.Parallel()
	secured := redistest.Start(t, redistest.Options{TLS: redistest.MutualTLS})
	for i, test := range []struct{ url, want string }{
		{"rediss://" + shared.Get(t).Addr(), "answers without TLS"},
		{"redis://" + secured.Addr(), "answers with TLS"},
		{"redis+cluster://" + secured.Addr(), "answers with TLS"},
	} {
		env := []string{"HOLDFAST_URL=" + test.url}
		for j, args := range [][]string{{"run", "scheme", "--connect-timeout", "300ms", "--", "true"}, {"check", "--connect-timeout", "300ms"}} {
			t.Run(args[0]+" "+test.url, func(t *testing.T) {
				t.Parallel()
				for _, client := range clientsFor(i + j) {
					out, errs, status := run(t, append(env, "HOLDFAST_CLIENT="+client), args...)
					if status != statusUnreachable || !strings.Contains(out+errs, test.want) {
						t.Errorf("%s: status %d: %s%s", client, status, out, errs)
					}
				}
			})
		}
	}
}

// caFile returns the file with the issuer of the server's certificate.
func caFile(t *testing.T, s *redistest.Server) string {
	t.Helper()
	reply, _ := s.MustCommand(t, "CONFIG", "GET", "tls-ca-cert-file").([]any)
	if len(reply) != 2 {
		t.Fatalf("CONFIG GET replied %v", reply)
	}
	file, _ := reply[1].(string)
	return file
}

// A silent Cluster or Sentinel is given up after --connect-timeout.
func TestRunSilentTopology(t *testing.T) {
	t.Parallel()
	proxy := faultproxy.Start(t, shared.Get(t).Addr())
	proxy.Freeze()
	for i, url := range []string{"redis+cluster://" + proxy.Addr(), "redis+sentinel://" + proxy.Addr() + "/m", "redis+cluster://127.0.0.1:1"} {
		for _, client := range clientsFor(i) {
			t.Run(client+" "+url, func(t *testing.T) {
				t.Parallel()
				env := []string{withItsLimits, "HOLDFAST_URL=" + url, "HOLDFAST_CLIENT=" + client}
				_, errs := says(t, statusUnreachable, "no answer from ", env, "run", "silent", "--connect-timeout", "300ms", "--", "true")
				check.Equal(t, "it says i/o timeout", strings.Contains(errs, "i/o timeout"), false)
			})
		}
	}
}
