package redistest

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/holdfast-go/holdfast/internal/localport"
	"github.com/holdfast-go/holdfast/internal/resp"
)

// commandTimeout bounds Command.
const commandTimeout = 30 * time.Second

// Stop shuts the server down in an orderly way and waits until it is gone. It
// is no error if it is gone already.
func (s *Server) Stop() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stop()
}

func (s *Server) stop() error {
	if err := s.proc.end(terminate); err != nil {
		return errors.Join(err, s.proc.end(os.Kill))
	}
	return s.hold()
}

// hold keeps the port of a stopped server: no other server is found there. A child forked by the
// server just before, to save or to send its data, has a copy of its listener for a moment.
func (s *Server) hold() error {
	if s.held != nil {
		return nil
	}
	return poll(context.Background(), "the port is free", func(context.Context) (err error) {
		s.held, err = localport.Hold(s.port)
		return err
	})
}

// runAgain starts the process on the held port. Another process may take the port first, most often
// one that looks for a free port and gives it up at once: runAgain tries again for a while.
func (s *Server) runAgain(ctx context.Context) error {
	if err := s.held.Drop(); err != nil {
		return err
	}
	s.held = nil
	end := time.Now().Add(patience)
	for {
		if err := s.run(ctx); !errors.Is(err, errPortTaken) || time.Now().After(end) {
			return err
		}
	}
}

// Kill ends the server with SIGKILL and waits until it is gone. It is no error
// if it is gone already.
func (s *Server) Kill() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.proc.end(os.Kill); err != nil {
		return err
	}
	return s.hold()
}

// Freeze stops the process with SIGSTOP: connections stay open, and commands are executed after
// Thaw. It returns when the process runs no more.
func (s *Server) Freeze() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.proc.freeze(context.Background())
}

// Thaw lets a frozen server go on.
func (s *Server) Thaw() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.proc.thaw()
}

// Restart starts the server again on the same port and in the same folder, after
// a Stop if it still runs. Its data come back if they are in an append-only file
// (Options.Args: "--appendonly", "yes"), else it is empty.
func (s *Server) Restart(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.stop(); err != nil {
		return err
	}
	return s.runAgain(ctx)
}

// RestartEmpty is Restart without the data, whatever is on disk. A cluster node
// still knows the cluster and its slots.
func (s *Server) RestartEmpty(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.stop(); err != nil {
		return err
	}
	for _, pattern := range []string{"appendonly*", "*.rdb"} {
		found, err := filepath.Glob(filepath.Join(s.dir, pattern))
		if err != nil {
			return err
		}
		for _, path := range found {
			if err := os.RemoveAll(path); err != nil {
				return err
			}
		}
	}
	return s.runAgain(ctx)
}

// Running reports whether the process is there, frozen or not.
func (s *Server) Running() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.proc != nil && !s.proc.gone()
}

// Close kills the server and removes its folder.
func (s *Server) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var err error
	if s.proc != nil {
		err = s.proc.end(os.Kill)
	}
	return errors.Join(err, s.held.Drop(), os.RemoveAll(s.dir))
}

// Dial opens a connection, logged in with Options.Password. ctx bounds only the login: the
// connection has no deadline.
func (s *Server) Dial(ctx context.Context) (*resp.Conn, error) {
	var d net.Dialer
	tcp, err := d.DialContext(ctx, "tcp", s.Addr())
	if err != nil {
		return nil, err
	}
	if cfg := s.TLSConfig(true); cfg != nil {
		tcp = tls.Client(tcp, cfg)
	}
	c := resp.NewConn(tcp)
	if s.opts.Password != "" {
		if _, err := do(ctx, c, "AUTH", s.opts.Password); err != nil {
			return nil, errors.Join(err, c.Close())
		}
	}
	return c, nil
}

// do is c.Do, but closes the connection when ctx is done.
func do(ctx context.Context, c *resp.Conn, args ...any) (any, error) {
	stop := context.AfterFunc(ctx, func() { c.Close() })
	defer stop()
	reply, err := c.Do(args...)
	if err != nil && ctx.Err() != nil {
		err = ctx.Err()
	}
	return reply, err
}

// Do sends one command over a connection of its own and returns the reply: int64, string, nil,
// []any, or the other types of resp.Value.Any. An error reply is a ServerError.
func (s *Server) Do(ctx context.Context, args ...any) (any, error) {
	c, err := s.Dial(ctx)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	return do(ctx, c, args...)
}

// Command is Do with a limit of 30 s.
func (s *Server) Command(args ...any) (any, error) {
	ctx, cancel := context.WithTimeout(context.Background(), commandTimeout)
	defer cancel()
	reply, err := s.Do(ctx, args...)
	if err != nil {
		return nil, fmt.Errorf("redistest: %s at %s: %w", fmt.Sprint(args...), s.Addr(), err)
	}
	return reply, nil
}

// MustCommand is Command, but fails the test on every error.
func (s *Server) MustCommand(tb TB, args ...any) any {
	tb.Helper()
	reply, err := s.Command(args...)
	if err != nil {
		tb.Fatalf("%v", err)
	}
	return reply
}
