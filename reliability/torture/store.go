package main

import (
	"bufio"
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/holdfast-go/holdfast/reliability/history"
	"github.com/holdfast-go/holdfast/reliability/workload"
)

// storeServer is the fenced store for all processes. Over a socket, it answers a line "name fence"
// by "true" or "false". Processes also pass holds on through it, by lines of fields separated by
// tabs: "pass name hold handle" is answered by "ok", "take name" by "hold handle" or "none".
type storeServer struct {
	store    history.Store
	passes   workload.PassesInMemory
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
		answer, ok := s.answer(lines.Text())
		if !ok {
			return
		}
		if _, err := fmt.Fprintln(c, answer); err != nil {
			return
		}
	}
}

const none = "none"

// answer answers a line; false: it cannot be read.
func (s *storeServer) answer(line string) (string, bool) {
	switch fields := strings.Split(line, "\t"); {
	case fields[0] == "pass" && len(fields) == 4:
		s.passes.Put(fields[1], history.Passed{Hold: fields[2], Handle: fields[3]})
		return "ok", true
	case fields[0] == "take" && len(fields) == 2:
		if p, ok := s.passes.Take(fields[1]); ok {
			return p.Hold + "\t" + p.Handle, true
		}
		return none, true
	}
	name, number, _ := strings.Cut(line, " ")
	fence, err := strconv.ParseInt(number, 10, 64)
	if err != nil {
		return "", false
	}
	accepted, _ := s.store.Accept(name, fence)
	return strconv.FormatBool(accepted), true
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

// storeClient is a client of the store. Only one goroutine may use it.
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
	answer, err := s.ask(fmt.Sprint(name, " ", fence))
	return answer == "true", err
}

// Put implements workload.Passes.
func (s *storeClient) Put(name string, p history.Passed) {
	_, _ = s.ask("pass", name, p.Hold, p.Handle) // if the store has ended, so has the parent
}

// Take implements workload.Passes.
func (s *storeClient) Take(name string) (history.Passed, bool) {
	answer, err := s.ask("take", name)
	hold, handle, found := strings.Cut(answer, "\t")
	return history.Passed{Hold: hold, Handle: handle}, found && err == nil
}

// ask sends a line and returns the answer.
func (s *storeClient) ask(fields ...string) (string, error) {
	if _, err := fmt.Fprintln(s.conn, strings.Join(fields, "\t")); err != nil {
		return "", err
	}
	if !s.lines.Scan() {
		return "", fmt.Errorf("the store is gone: %w", s.lines.Err())
	}
	return s.lines.Text(), nil
}
