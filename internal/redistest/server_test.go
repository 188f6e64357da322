package redistest_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// wantServerError wants an error reply with one of the prefixes.
func wantServerError(t *testing.T, err error, prefixes ...string) {
	t.Helper()
	var se redistest.ServerError
	begins := func(prefix string) bool { return strings.HasPrefix(string(se), prefix) }
	if !errors.As(err, &se) || !slices.ContainsFunc(prefixes, begins) {
		t.Errorf("error %v, want a server's %q", err, prefixes)
	}
}

func TestServerAnswers(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.Options{})
	check.Equal(t, "SET", s.MustCommand(t, "SET", "k", []byte("v"), "PX", 60_000), "OK")
	check.Within(t, "PTTL", s.MustCommand(t, "PTTL", "k").(int64), 1, 60_000)
	if _, port, err := net.SplitHostPort(s.Addr()); err != nil || s.Port() == 0 || port != s.MustCommand(t, "CONFIG", "GET", "port").([]any)[1] {
		t.Errorf("Addr %s, Port %d", s.Addr(), s.Port())
	}
	s.MustCommand(t, "DEBUG", "SLEEP", 0) // must be allowed
	_, err := s.Command("NOSUCH")
	wantServerError(t, err, "ERR unknown command")
	check.Contains(t, "log", s.Log(), "Ready to accept connections")
}

func TestOptions(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.Options{
		Password: `with space and 'quote'`, // Valkey 8.1.1 ends at a double quote
		Args:     []string{"--maxmemory", "1mb", "--user", "app", "on", ">secret", "~lock:*", "+set"},
	})
	check.Equal(t, "maxmemory", s.MustCommand(t, "CONFIG", "GET", "maxmemory").([]any)[1], "1048576")
	open := redistest.Start(t, redistest.Options{})
	conn, err := open.Dial(t.Context()) // without a password of its own
	check.Must(t, err)
	defer conn.Close()
	check.OK(t, check.ErrOf(conn.Do("PING")))
	app, err := s.Dial(t.Context())
	check.Must(t, err)
	defer app.Close()
	check.Must(t, check.ErrOf(app.Do("AUTH", "app", "secret")))
	_, err = app.Do("SET", "other", 1)
	wantServerError(t, err, "NOPERM")
}

func TestBadOptionsAreRefused(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string]redistest.Options{
		"port":     {Args: []string{"--port", "1"}},
		"password": {Args: []string{"--maxmemory", "1mb", "--RequirePass x"}},
		"TLS":      {TLS: 9},
		"Announce": {Announce: func(string) (int, error) { return 1, nil }},
	} {
		if s, err := redistest.Launch(t.Context(), opts); err == nil {
			t.Errorf("%s: no error", name)
			check.Must(t, s.Close())
		}
	}
	if c, err := redistest.LaunchCluster(t.Context(), 0, redistest.Options{}); err == nil {
		t.Error("a cluster of nothing")
		check.Must(t, c.Close())
	}
}

func TestLaunchShowsTheLogOfAServerThatEnds(t *testing.T) {
	redistest.Need(t)
	t.Setenv("TMPDIR", t.TempDir())
	_, err := redistest.Launch(t.Context(), redistest.Options{Args: []string{"--no-such-setting", "1"}})
	if err == nil || !strings.Contains(err.Error(), "no-such-setting") {
		t.Errorf("error %v, want the log", err)
	}
	left, _ := filepath.Glob(filepath.Join(os.TempDir(), "*"))
	check.EqualSlices(t, "left behind", left, nil)
}

func TestCloseLeavesNothing(t *testing.T) {
	redistest.Need(t)
	t.Setenv("TMPDIR", t.TempDir())
	for name, prepare := range map[string]func(*redistest.Server) error{
		"running": func(*redistest.Server) error { return nil },
		"frozen":  (*redistest.Server).Freeze,
		"stopped": (*redistest.Server).Stop,
		"killed":  (*redistest.Server).Kill,
	} {
		s, err := redistest.Launch(t.Context(), redistest.Options{})
		check.Must(t, err)
		check.Equal(t, name+": running", s.Running(), true)
		check.Must(t, prepare(s))
		check.Must(t, s.Close())
		check.Must(t, s.Close())
		check.Equal(t, name+": running after Close", s.Running(), false)
		check.Error(t, name+": dial", check.ErrOf(net.Dial("tcp", s.Addr())), syscall.ECONNREFUSED)
		left, _ := filepath.Glob(filepath.Join(os.TempDir(), "*"))
		check.EqualSlices(t, name+": left behind", left, nil)
	}
}

func TestFreezeHoldsCommandsBack(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.Options{})
	conn, err := s.Dial(t.Context())
	check.Must(t, err)
	defer conn.Close()
	check.Must(t, s.Freeze())
	check.Must(t, conn.Send("SET", "k", "late"))
	//realtime:ok a frozen server answers nobody, however long it takes
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	reply, err := s.Do(ctx, "PING") // at the deadline net.Dialer returns one of two errors
	if !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a frozen server says %v, %v", reply, err)
	}
	check.Must(t, s.Thaw())
	if v, err := conn.Receive(); err != nil || v.Text != "OK" {
		t.Errorf("after Thaw: %v, %v", v, err)
	}
}

func TestRestart(t *testing.T) {
	t.Parallel()
	type server = *redistest.Server
	again := func(s server) error { return s.Restart(t.Context()) }
	empty := func(s server) error { return s.RestartEmpty(t.Context()) }
	type test struct {
		args    []string
		end     func(server) error
		restart func(server) error
		want    any
	}
	check.Each(t, map[string]test{
		"in memory":          {end: server.Stop, restart: again, want: nil},
		"AOF":                {args: []string{"--appendonly", "yes"}, end: server.Stop, restart: again, want: "v"},
		"AOF, killed":        {args: []string{"--appendonly", "yes"}, end: server.Kill, restart: again, want: "v"},
		"AOF, frozen":        {args: []string{"--appendonly", "yes"}, end: server.Freeze, restart: again, want: "v"},
		"AOF, still running": {args: []string{"--appendonly", "yes"}, end: func(server) error { return nil }, restart: again, want: "v"},
		"AOF thrown away":    {args: []string{"--appendonly", "yes"}, end: server.Kill, restart: empty, want: nil},
		"RDB thrown away":    {args: []string{"--save", "60 100000"}, end: server.Stop, restart: empty, want: nil},
	}, func(t *testing.T, tc test) {
		s := redistest.Start(t, redistest.Options{Args: tc.args})
		addr, run := s.Addr(), s.MustCommand(t, "INFO", "server")
		s.MustCommand(t, "SET", "k", "v")
		check.Must(t, tc.end(s))
		check.Must(t, tc.restart(s))
		check.Equal(t, "GET after restart", s.MustCommand(t, "GET", "k"), tc.want)
		if s.Addr() != addr || s.MustCommand(t, "INFO", "server") == run {
			t.Errorf("at %s instead of %s, or the same run", s.Addr(), addr)
		}
	})
}

// Somebody takes the port of a server during its restart, and gives it up once that has failed.
func TestRestartOnAPortThatIsTakenForAWhile(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.Options{})
	taken := func() bool { return strings.Contains(s.Log(), "Address already in use") }
	for range 10 { // on a busy machine the server may come first
		check.Must(t, s.Kill())
		ctx, cancel := context.WithCancel(t.Context())
		over := make(chan struct{})
		go func() {
			defer close(over)
			for ctx.Err() == nil { // until the port is there to be taken
				if l, err := new(net.ListenConfig).Listen(ctx, "tcp", s.Addr()); err == nil {
					for ctx.Err() == nil && !taken() {
						<-time.After(10 * time.Millisecond)
					}
					_ = l.Close()
					return
				}
			}
		}()
		err := s.Restart(t.Context())
		cancel()
		<-over
		check.Must(t, err)
		s.MustCommand(t, "PING")
		if taken() {
			return
		}
	}
	t.Error("nobody took the port: this proves nothing")
}
