// Package memredis runs miniredis on a network in memory, for bubbles of testing/synctest: keys expire
// by fake time, and connections take no ports.
package memredis

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/holdfast-go/holdfast/internal/memnet"
)

// Server is a miniredis on a network in memory.
type Server struct {
	*miniredis.Miniredis
	Net *memnet.Net

	listener net.Listener
	record   *record
	accepts  sync.WaitGroup
}

// Start starts a server on network. tb closes it.
func Start(tb testing.TB, network *memnet.Net) *Server {
	tb.Helper()
	m := miniredis.NewMiniRedis()
	m.ClockTTL(true)
	first, err := m.Dial() // starts it
	if err != nil {
		tb.Fatalf("miniredis: %v", err)
	}
	_ = first.Close()
	l, err := network.Listen()
	if err != nil {
		tb.Fatalf("miniredis: %v", err)
	}
	s := &Server{Miniredis: m, Net: network, listener: l, record: &record{began: time.Now()}}
	serve := m.Server().ServeConn
	s.accepts.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			serve(s.record.conn(c))
		}
	})
	tb.Cleanup(s.Close)
	return s
}

// Dial opens a connection over the server's network.
func (s *Server) Dial() (net.Conn, error) { return s.Net.Dial(context.Background(), "tcp", s.Addr()) }

// Addr returns the address on the server's network, also after Close.
func (s *Server) Addr() string { return s.listener.Addr().String() }

// Close closes the server and its connections. Its address refuses connections from then on.
func (s *Server) Close() {
	_ = s.listener.Close()
	s.accepts.Wait()
	s.Miniredis.Close()
}
