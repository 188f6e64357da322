package main

import (
	"bufio"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"sync"

	"github.com/holdfast-go/holdfast/reliability/history"
)

// storeServer is the fenced store for all processes: over a socket, a line "name fence" is answered
// by "true" or "false". Holds are passed on by way of it, too: see passedOn.
type storeServer struct {
	store    history.Store
	passed   passedOn
	listener net.Listener
	wg       sync.WaitGroup

	mu    sync.Mutex
	conns map[net.Conn]bool
}

func serveStore(dir string) (*storeServer, error) {
	l, err := net.Listen("unix", filepath.Join(dir, "store"))
	if err != nil {
		return nil, err
	}
	s := &storeServer{listener: l, conns: map[net.Conn]bool{}}
	s.wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			s.conns[c] = true
			s.mu.Unlock()
			s.wg.Go(func() { s.serve(c) })
		}
	})
	return s, nil
}

func (s *storeServer) addr() string { return s.listener.Addr().String() }

func (s *storeServer) serve(c net.Conn) {
	defer func() {
		c.Close()
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.conns, c)
	}()
	lines := bufio.NewScanner(c)
	for lines.Scan() {
		if answer, ok := s.passed.answer(lines.Text()); ok {
			if _, err := fmt.Fprintln(c, answer); err != nil {
				return
			}
			continue
		}
		var fence int64
		name, number, _ := strings.Cut(lines.Text(), " ")
		if _, err := fmt.Sscan(number, &fence); err != nil {
			return
		}
		accepted, _ := s.store.Accept(name, fence)
		if _, err := fmt.Fprintln(c, accepted); err != nil {
			return
		}
	}
}

func (s *storeServer) close() {
	s.listener.Close()
	s.mu.Lock()
	for c := range s.conns {
		c.Close()
	}
	s.mu.Unlock()
	s.wg.Wait()
}

// storeClient reaches the store; it is for one goroutine.
type storeClient struct {
	conn  net.Conn
	lines *bufio.Scanner
}

func dialStore(addr string) (*storeClient, error) {
	c, err := net.Dial("unix", addr)
	if err != nil {
		return nil, err
	}
	return &storeClient{c, bufio.NewScanner(c)}, nil
}

// accept is history.Store.Accept over the socket.
func (s *storeClient) accept(name string, fence int64) (bool, error) {
	if _, err := fmt.Fprintln(s.conn, name, fence); err != nil {
		return false, err
	}
	if !s.lines.Scan() {
		return false, fmt.Errorf("the store is gone: %w", s.lines.Err())
	}
	return s.lines.Text() == "true", nil
}
