package redistest

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/holdfast-go/holdfast/internal/localport"
	"github.com/holdfast-go/holdfast/internal/resp"
)

// ServerError is an error reply, as in "NOPERM this user has no permissions".
type ServerError = resp.Error

// Server is one server process. It may be stopped and started again. Its methods may be called from
// several goroutines.
type Server struct {
	opts      Options
	port      int
	busPort   int    // of cluster nodes
	announced int    // the port announced to clients; port unless Options.Announce
	dir       string // holds its log and whatever it writes
	args      []string

	mu   sync.Mutex
	proc *process        // of the last run; it may be gone
	held *localport.Held // the port, while the process is gone
}

// Start starts one server for a test.
func Start(tb TB, opts Options) *Server {
	tb.Helper()
	return start(tb, func(ctx context.Context) (*Server, error) { return Launch(ctx, opts) })
}

// Launch starts one server. The caller must Close it. ctx bounds the starting, not the server's
// life.
func Launch(ctx context.Context, opts Options) (*Server, error) {
	if opts.Announce != nil {
		return nil, errors.New("redistest: Options.Announce is for clusters only")
	}
	return launch(ctx, opts, opts.common)
}

var errPortTaken = errors.New("port is taken")

// launch starts a server with the command line of configure. If another process takes its port, it
// tries again with another.
func launch(ctx context.Context, opts Options, configure func(*Server) ([]string, error)) (*Server, error) {
	if err := opts.check(); err != nil {
		return nil, err
	}
	var err error
	for range 10 {
		var s *Server
		if s, err = launchOnce(ctx, opts, configure); err == nil {
			return s, nil
		}
		if !errors.Is(err, errPortTaken) {
			break
		}
	}
	return nil, err
}

func launchOnce(ctx context.Context, opts Options, configure func(*Server) ([]string, error)) (_ *Server, err error) {
	ports, err := localport.Free(2)
	if err != nil {
		return nil, err
	}
	s := &Server{opts: opts, port: ports[0], busPort: ports[1], announced: ports[0]}
	if s.dir, err = os.MkdirTemp("", "redistest-"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	if s.args, err = configure(s); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s, s.run(ctx)
}

// run starts the process and waits until it answers. s.mu is held.
func (s *Server) run(ctx context.Context) error {
	before := len(s.Log())
	p, err := run(s.args, s.logName())
	if err != nil {
		return err
	}
	s.proc = p
	alive, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-p.exited:
			cancel()
		case <-alive.Done():
		}
	}()
	err = poll(alive, "the server answers", func(ctx context.Context) error { return s.ping(ctx, p.cmd.Process.Pid) })
	if !p.gone() {
		return err
	}
	log := s.Log()[before:]
	err = fmt.Errorf("redistest: the server ended at its start; its log:\n%s", log)
	if strings.Contains(log, "Address already in use") {
		err = fmt.Errorf("%w: %w", errPortTaken, err)
	}
	return err
}

// ping reports whether the server answers, and is our process.
func (s *Server) ping(ctx context.Context, pid int) error {
	if _, err := s.Do(ctx, "PING"); err != nil { // an error too while it loads its data
		return err
	}
	info, err := s.Do(ctx, "INFO", "server")
	if err != nil {
		return err
	}
	if text, _ := info.(string); infoField(text, "process_id") != strconv.Itoa(pid) {
		return errors.New("another server answers")
	}
	return nil
}

// infoField returns a value from INFO's "name:value" lines.
func infoField(info, name string) string {
	for line := range strings.Lines(info) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// Port returns the server's port.
func (s *Server) Port() int { return s.port }

// Addr returns the server's address, as in "127.0.0.1:21234".
func (s *Server) Addr() string { return localAddr(s.port) }

func localAddr(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// Password returns Options.Password.
func (s *Server) Password() string { return s.opts.Password }

// TLSConfig returns a client's TLS configuration, with a client certificate if
// asked for; nil if the server does not speak TLS.
func (s *Server) TLSConfig(clientCertificate bool) *tls.Config {
	return clientTLS(s.opts.TLS, clientCertificate)
}

func (s *Server) logName() string { return filepath.Join(s.dir, "server.log") }

// Log returns the server's log, over all its runs.
func (s *Server) Log() string {
	b, _ := os.ReadFile(s.logName()) // not there before the first run
	return string(b)
}
