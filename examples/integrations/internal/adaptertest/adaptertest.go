// Package adaptertest checks an adapter from Holdfast to the lock interface of another project, on
// Redis servers of its own. Each example runs it, beside the other project's tests.
package adaptertest

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/effort"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/providers/goredis"
	"github.com/holdfast-go/holdfast/strategies/single"
)

// patience bounds each wait. The event comes soon, except on a very busy machine.
const patience = 30 * time.Second

// Server is a Redis server for one test.
type Server struct {
	*redistest.Server
	t *testing.T
}

// Start starts a server.
func Start(t *testing.T) *Server {
	t.Helper()
	return &Server{redistest.Start(t, redistest.Options{}), t}
}

// Process returns a Locker with a client and connections of its own, as another process has. An
// attempt takes up to a minute, unless of says otherwise.
func (s *Server) Process(cfg holdfast.Config, of single.Config) locker.Locker {
	s.t.Helper()
	client := redis.NewClient(&redis.Options{Addr: s.Addr(), ContextTimeoutEnabled: true, ReadTimeout: time.Minute})
	s.t.Cleanup(func() { _ = client.Close() })
	drv, err := goredis.New(client)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = drv.Close() })
	of.AttemptTimeout = cmp.Or(of.AttemptTimeout, time.Minute)
	strategy, err := single.New(drv, of)
	if err != nil {
		s.t.Fatal(err)
	}
	l, err := holdfast.Wrap(strategy, cfg)
	if err != nil {
		s.t.Fatal(err)
	}
	return l
}

// Waiting waits until a process waits for the name.
func (s *Server) Waiting(name string) {
	s.t.Helper()
	s.await("nobody waits for "+name, "EXISTS", int64(1), "{"+name+"}:waiters")
}

// Empty waits until the server has no keys.
func (s *Server) Empty() {
	s.t.Helper()
	s.await("keys are left", "DBSIZE", int64(0))
}

// await sends a command until it returns want.
func (s *Server) await(otherwise, command string, want any, args ...any) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		got, err := s.Do(ctx, append([]any{command}, args...)...)
		if err != nil {
			s.t.Fatalf("%s: %v", otherwise, err)
		}
		if got == want {
			return
		}
		<-tick.C
	}
}

// Mutex is an adapter, without its project's arguments.
type Mutex struct {
	Lock, Unlock func() error
}

// Open makes an adapter over l that waits for as long as ctx and req let it.
type Open func(ctx context.Context, l locker.Locker, req locker.Request) Mutex

// Run checks that an adapter keeps the promises of a Locker. name is the lock's.
func Run(t *testing.T, name string, open Open) {
	t.Helper()
	for _, c := range []struct {
		name string
		run  func(*testing.T, *Server, string, Open)
	}{
		{"processes exclude each other", exclusion},
		{"a wait ends with MaxWait", maxWait},
		{"a wait ends with ctx", cancel},
		{"a lost lock is reported and blocks nobody", loss},
		{"an outage is not contention", outage},
		{"an Unlock without an answer returns", silence},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := Start(t)
			c.run(t, s, name, open)
			s.Empty()
		})
	}
}

func exclusion(t *testing.T, s *Server, _ string, open Open) {
	var inside atomic.Int32
	var wg sync.WaitGroup
	for range 3 {
		m := open(t.Context(), s.Process(holdfast.Config{}, single.Config{}), locker.Request{})
		wg.Go(func() {
			for range 10 {
				if err := m.Lock(); err != nil {
					t.Errorf("Lock: %v", err)
					return
				}
				if n := inside.Add(1); n != 1 {
					t.Errorf("%d processes hold the lock", n)
				}
				inside.Add(-1)
				if err := m.Unlock(); err != nil {
					t.Errorf("Unlock: %v", err)
				}
			}
		})
	}
	wg.Wait()
}

func maxWait(t *testing.T, s *Server, _ string, open Open) {
	effort.NeedFull(t)
	holder := open(t.Context(), s.Process(holdfast.Config{}, single.Config{}), locker.Request{})
	other := open(t.Context(), s.Process(holdfast.Config{}, single.Config{}), locker.Request{MaxWait: 10 * time.Second})
	must(t, "Lock", holder.Lock())
	want(t, "Lock of another process", other.Lock(), locker.ErrNotAcquired)
	must(t, "Unlock", holder.Unlock())
}

func cancel(t *testing.T, s *Server, name string, open Open) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	holder := open(t.Context(), s.Process(holdfast.Config{}, single.Config{}), locker.Request{})
	other := open(ctx, s.Process(holdfast.Config{}, single.Config{}), locker.Request{})
	must(t, "Lock", holder.Lock())
	waited := make(chan error, 1)
	go func() { waited <- other.Lock() }()
	s.Waiting(name)
	cancel()
	select {
	case err := <-waited:
		want(t, "Lock of another process", err, context.Canceled)
	case <-time.After(patience):
		t.Fatal("the wait did not end")
	}
	must(t, "Unlock", holder.Unlock())
}

func loss(t *testing.T, s *Server, name string, open Open) {
	paused := open(t.Context(), s.Process(holdfast.Config{}, single.Config{}), locker.Request{})
	next := open(t.Context(), s.Process(holdfast.Config{}, single.Config{}), locker.Request{})
	must(t, "Lock", paused.Lock())
	s.MustCommand(t, "DEL", name) // as if its lease had ended
	must(t, "Lock of another process", next.Lock())
	want(t, "Unlock of the lost lock", paused.Unlock(), locker.ErrLost)
	if s.MustCommand(t, "EXISTS", name) != int64(1) {
		t.Error("the Unlock of the lost lock released the lock of the next holder")
	}
	must(t, "Unlock", next.Unlock())
}

func outage(t *testing.T, s *Server, _ string, open Open) {
	m := open(t.Context(), s.Process(holdfast.Config{}, single.Config{}), locker.Request{MaxWait: 500 * time.Millisecond})
	must(t, "Freeze", s.Freeze())
	err := m.Lock()
	switch {
	case err == nil:
		t.Error("Lock returned no error, while the server was frozen")
	case errors.Is(err, locker.ErrNotAcquired):
		t.Errorf("Lock: %v, which says that another holds the lock", err)
	}
	must(t, "Thaw", s.Thaw())
	s.Empty() // late executions are cleaned up
	// An answer of a busy machine may take longer than MaxWait.
	patient := open(t.Context(), s.Process(holdfast.Config{}, single.Config{}), locker.Request{})
	must(t, "Lock after the outage", patient.Lock())
	must(t, "Unlock after the outage", patient.Unlock())
}

func silence(t *testing.T, s *Server, _ string, open Open) {
	m := open(t.Context(), s.Process(holdfast.Config{}, single.Config{ReleaseTimeout: time.Second}), locker.Request{})
	must(t, "Lock", m.Lock())
	must(t, "Freeze", s.Freeze())
	want(t, "Unlock", m.Unlock(), locker.ErrUnknownOutcome)
	must(t, "Thaw", s.Thaw())
}

func must(t *testing.T, what string, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

func want(t *testing.T, what string, err, target error) {
	t.Helper()
	if !errors.Is(err, target) {
		t.Errorf("%s: %v, want an error that matches %q", what, err, target)
	}
}
