package redistest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
)

// Shared is a *Server, *Cluster or *Sentinel shared by the tests of a package. It starts when the
// first test asks for it:
//
//	var server = redistest.Share(func(ctx context.Context) (*redistest.Server, error) {
//		return redistest.Launch(ctx, redistest.Options{})
//	})
//
//	func TestMain(m *testing.M) { goleak.VerifyTestMain(redistest.CloseAfter(m, server)) }
//
//	func TestSomething(t *testing.T) { addr := server.Get(t).Addr(); ... }
//
// Tests with a shared server must use keys of their own and disturb nobody.
type Shared[T node] struct {
	launch func(context.Context) (T, error)

	mu      sync.Mutex
	started bool
	node    T
	err     error
}

// Share returns a Shared, to be started by launch.
func Share[T node](launch func(context.Context) (T, error)) *Shared[T] {
	return &Shared[T]{launch: launch}
}

// Get returns the server, started by the first call. It skips or fails the test as Start and its
// siblings do, and shows the log if the test fails.
func (s *Shared[T]) Get(tb TB) T {
	tb.Helper()
	var kind T
	switch any(kind).(type) {
	case *Cluster, *Sentinel:
		needMany(tb)
	default:
		Need(tb)
	}
	s.mu.Lock()
	if !s.started {
		s.started = true
		s.node, s.err = s.launch(context.Background()) // it outlives the test
	}
	n, err := s.node, s.err
	s.mu.Unlock()
	if err != nil {
		tb.Fatalf("%v", err)
	}
	tb.Cleanup(func() {
		if tb.Failed() {
			tb.Logf("log of the server that %s shares:\n%s", tb.Name(), tail(n.Log()))
		}
	})
	return n
}

// Close closes the server, if it was started.
func (s *Shared[T]) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.started || s.err != nil {
		return nil
	}
	s.err = errors.New("redistest: Get after Close")
	return s.node.Close()
}

// M is the part of *testing.M needed by CloseAfter.
type M interface{ Run() int }

// CloseAfter returns an M that runs m's tests and then closes shared.
func CloseAfter(m M, shared ...io.Closer) M { return closingM{m, shared} }

type closingM struct {
	M
	shared []io.Closer
}

// Run runs the tests. A failure to close counts as theirs.
func (m closingM) Run() int {
	code := m.M.Run()
	for _, s := range m.shared {
		if err := s.Close(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = max(code, 1)
		}
	}
	return code
}
