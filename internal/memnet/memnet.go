// Package memnet is a TCP-like network in memory for bubbles of testing/synctest: what waits, waits
// on channels and timers. Connections have buffers without a bound, half-closing and resets.
package memnet

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// Net is a network. The zero Net is not ready: use New.
type Net struct {
	Latency time.Duration // of each segment; set it before use

	mu        sync.Mutex
	port      int
	listeners map[string]*Listener
}

// New returns a network with nobody on it.
func New() *Net { return &Net{port: 10_000, listeners: map[string]*Listener{}} }

// Listen listens on a new address.
func (n *Net) Listen() (net.Listener, error) {
	n.mu.Lock()
	n.port++
	addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(n.port))
	n.mu.Unlock()
	return n.ListenAt(addr)
}

// ListenAt listens on an address that Listen gave out once.
func (n *Net) ListenAt(addr string) (net.Listener, error) {
	tcp, err := net.ResolveTCPAddr("tcp", addr) // no DNS: digits
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.listeners[addr] != nil {
		return nil, &net.OpError{Op: "listen", Net: "tcp", Addr: tcp, Err: syscall.EADDRINUSE}
	}
	l := &Listener{net: n, addr: tcp, accept: make(chan net.Conn, 1000), closed: make(chan struct{})}
	n.listeners[addr] = l
	return l, nil
}

// Dial connects to a listener.
func (n *Net) Dial(ctx context.Context, _, addr string) (net.Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: err}
	}
	if n.Latency > 0 {
		t := time.NewTimer(2 * n.Latency)
		defer t.Stop()
		select {
		case <-t.C:
		case <-ctx.Done():
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: ctx.Err()}
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	l := n.listeners[addr]
	if l == nil {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	}
	n.port++
	local := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: n.port}
	up, down := newStream(), newStream()
	l.accept <- &Conn{net: n, in: up, out: down, local: l.addr, remote: local}
	return &Conn{net: n, in: down, out: up, local: local, remote: l.addr}, nil
}

// Listener implements net.Listener.
type Listener struct {
	net    *Net
	addr   *net.TCPAddr
	accept chan net.Conn
	once   sync.Once
	closed chan struct{}
}

// Accept implements net.Listener.
func (l *Listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.accept:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Addr implements net.Listener.
func (l *Listener) Addr() net.Addr { return l.addr }

// Close implements net.Listener. What was not accepted is reset.
func (l *Listener) Close() error {
	l.once.Do(func() {
		l.net.mu.Lock()
		if l.net.listeners[l.addr.String()] == l {
			delete(l.net.listeners, l.addr.String())
		}
		close(l.closed)
		l.net.mu.Unlock()
		for {
			select {
			case c := <-l.accept:
				_ = c.(*Conn).SetLinger(0)
				_ = c.Close()
			default:
				return
			}
		}
	})
	return nil
}

// stream is one direction.
type stream struct {
	mu       sync.Mutex
	segments []segment
	ended    bool  // the writer has closed
	broken   error // both ends get it at once
	deaf     bool  // the reader has closed
	until    time.Time
	wake     chan struct{}
}

type segment struct {
	data []byte
	at   time.Time
}

func newStream() *stream { return &stream{wake: make(chan struct{}, 1)} }

func (s *stream) poke() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Conn implements net.Conn, with the CloseWrite and SetLinger of a *net.TCPConn.
type Conn struct {
	net           *Net
	in, out       *stream
	local, remote *net.TCPAddr

	mu     sync.Mutex
	closed bool
	reset  bool
	wuntil time.Time
}

func (c *Conn) opErr(op string, err error) error {
	return &net.OpError{Op: op, Net: "tcp", Source: c.local, Addr: c.remote, Err: err}
}

// Read implements net.Conn.
func (c *Conn) Read(p []byte) (int, error) {
	for {
		n, wait, err := c.read(p)
		if err == io.EOF {
			return n, err
		}
		if err != nil {
			return n, c.opErr("read", err)
		}
		if n > 0 || len(p) == 0 {
			return n, nil
		}
		if wait == 0 {
			<-c.in.wake
			continue
		}
		t := time.NewTimer(wait)
		select {
		case <-c.in.wake:
		case <-t.C:
		}
		t.Stop()
	}
}

func (c *Conn) read(p []byte) (int, time.Duration, error) {
	c.mu.Lock()
	closed := c.closed
	c.mu.Unlock()
	s := c.in
	s.mu.Lock()
	defer s.mu.Unlock()
	if closed {
		s.poke() // another reader
		return 0, 0, net.ErrClosed
	}
	if s.broken != nil {
		return 0, 0, s.broken
	}
	now := time.Now()
	if !s.until.IsZero() && !s.until.After(now) {
		return 0, 0, os.ErrDeadlineExceeded
	}
	var next time.Time
	if len(s.segments) > 0 {
		first := &s.segments[0]
		if !first.at.After(now) {
			n := copy(p, first.data)
			if first.data = first.data[n:]; len(first.data) == 0 {
				s.segments = s.segments[1:]
			}
			return n, 0, nil
		}
		next = first.at
	} else if s.ended {
		return 0, 0, io.EOF
	}
	if !s.until.IsZero() && (next.IsZero() || s.until.Before(next)) {
		next = s.until
	}
	if next.IsZero() {
		return 0, 0, nil
	}
	return 0, max(next.Sub(now), 1), nil
}

// Write implements net.Conn. It never blocks.
func (c *Conn) Write(p []byte) (int, error) {
	c.mu.Lock()
	closed, until := c.closed, c.wuntil
	c.mu.Unlock()
	s := c.out
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case closed:
		return 0, c.opErr("write", net.ErrClosed)
	case !until.IsZero() && !until.After(time.Now()):
		return 0, c.opErr("write", os.ErrDeadlineExceeded)
	case s.broken != nil || s.deaf || s.ended:
		return 0, c.opErr("write", os.NewSyscallError("write", syscall.EPIPE))
	}
	s.segments = append(s.segments, segment{append([]byte(nil), p...), time.Now().Add(c.net.Latency)})
	s.poke()
	return len(p), nil
}

// CloseWrite ends the stream to the other side.
func (c *Conn) CloseWrite() error {
	c.out.mu.Lock()
	defer c.out.mu.Unlock()
	if c.out.deaf || c.out.broken != nil {
		return c.opErr("close", os.NewSyscallError("shutdown", syscall.ENOTCONN))
	}
	c.out.ended = true
	c.out.poke()
	return nil
}

// SetLinger makes Close reset the connection if sec is 0.
func (c *Conn) SetLinger(sec int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reset = sec == 0
	return nil
}

// Close implements net.Conn.
func (c *Conn) Close() error {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return c.opErr("close", net.ErrClosed)
	}
	c.closed = true
	reset := c.reset
	c.mu.Unlock()
	c.out.mu.Lock()
	if c.out.ended = true; reset {
		c.out.broken, c.out.segments = syscall.ECONNRESET, nil
	}
	c.out.poke()
	c.out.mu.Unlock()
	c.in.mu.Lock()
	c.in.deaf = true
	c.in.poke()
	c.in.mu.Unlock()
	return nil
}

// SetReadDeadline implements net.Conn.
func (c *Conn) SetReadDeadline(t time.Time) error {
	c.in.mu.Lock()
	defer c.in.mu.Unlock()
	c.in.until = t
	c.in.poke()
	return nil
}

// SetWriteDeadline implements net.Conn.
func (c *Conn) SetWriteDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wuntil = t
	return nil
}

// SetDeadline implements net.Conn.
func (c *Conn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

// LocalAddr implements net.Conn.
func (c *Conn) LocalAddr() net.Addr { return c.local }

// RemoteAddr implements net.Conn.
func (c *Conn) RemoteAddr() net.Addr { return c.remote }
