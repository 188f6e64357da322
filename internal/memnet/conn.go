package memnet

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"time"
)

// conn is one end of a connection. It implements net.Conn.
type conn struct {
	latency       time.Duration
	local, remote *net.TCPAddr
	peer          *conn

	mu *sync.Mutex // of both ends: each writes to the other's inbox

	inbox         inbox
	changed       signal // for waiting Reads
	readDeadline  time.Time
	writeDeadline time.Time
	broken        time.Time // when the answer to a Write to a closed peer arrives; zero: never
	ended         bool      // CloseWrite or Close was called
	closed        bool
	closeResets   bool
}

// newPair returns the two ends of a connection.
func newPair(latency time.Duration, client, server netip.AddrPort) (*conn, *conn) {
	a, b := net.TCPAddrFromAddrPort(client), net.TCPAddrFromAddrPort(server)
	mu := new(sync.Mutex)
	c := &conn{latency: latency, local: a, remote: b, mu: mu}
	c.peer = &conn{latency: latency, local: b, remote: a, mu: mu, peer: c}
	return c, c.peer
}

func (c *conn) LocalAddr() net.Addr  { return c.local }
func (c *conn) RemoteAddr() net.Addr { return c.remote }

func (c *conn) Read(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		n, next, err := c.receive(p, time.Now())
		if n > 0 || len(p) == 0 || err != nil {
			return n, c.opError("read", err)
		}
		c.await(next)
	}
}

// receive reads without waiting. If nothing has arrived, it returns when to try again unless c
// changes before; zero: only then.
func (c *conn) receive(p []byte, now time.Time) (n int, next time.Time, err error) {
	switch {
	case c.closed:
		return 0, next, net.ErrClosed
	case len(p) == 0:
		return 0, next, nil
	case passed(c.readDeadline, now):
		return 0, next, os.ErrDeadlineExceeded
	}
	n, next, err = c.inbox.read(p, now)
	if d := c.readDeadline; next.IsZero() || !d.IsZero() && d.Before(next) {
		next = d
	}
	return n, next, err
}

// await waits, with c.mu unlocked, until c changes or t has come, if t is not zero.
func (c *conn) await(t time.Time) {
	changed := c.changed.next()
	c.mu.Unlock()
	defer c.mu.Lock()
	var due <-chan time.Time
	if !t.IsZero() {
		timer := time.NewTimer(time.Until(t))
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-changed:
	case <-due:
	}
}

// Write never waits.
func (c *conn) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	switch {
	case c.closed:
		return 0, c.opError("write", net.ErrClosed)
	case passed(c.writeDeadline, now):
		return 0, c.opError("write", os.ErrDeadlineExceeded)
	case c.ended, passed(c.broken, now):
		return 0, c.opError("write", syscall.EPIPE)
	case c.inbox.reset(now):
		return 0, c.opError("write", syscall.ECONNRESET)
	case len(p) == 0:
	case !c.peer.closed:
		c.send(segment{data: append([]byte(nil), p...)})
	case c.broken.IsZero():
		c.broken = now.Add(2 * c.latency)
	}
	return len(p), nil
}

// send sends a segment. c.mu is held.
func (c *conn) send(s segment) {
	s.at = time.Now().Add(c.latency)
	c.peer.inbox = append(c.peer.inbox, s)
	c.peer.changed.fire()
}

// end sends the end of the stream once. c.mu is held.
func (c *conn) end() {
	if !c.ended {
		c.ended = true
		c.send(segment{last: io.EOF})
	}
}

// Close ends both directions. The peer still reads the data sent before, unless SetLinger makes
// Close a reset.
func (c *conn) Close() error {
	return c.change("close", func() {
		if c.closeResets {
			c.ended = true
			c.send(segment{last: syscall.ECONNRESET})
		}
		c.end()
		c.closed = true
	})
}

// CloseWrite ends the stream to the peer.
func (c *conn) CloseWrite() error { return c.change("close", c.end) }

// SetLinger makes Close a reset if sec is 0.
func (c *conn) SetLinger(sec int) error {
	return c.change("set", func() { c.closeResets = sec == 0 })
}

func (c *conn) SetDeadline(t time.Time) error {
	return c.change("set", func() { c.readDeadline, c.writeDeadline = t, t })
}

func (c *conn) SetReadDeadline(t time.Time) error {
	return c.change("set", func() { c.readDeadline = t })
}

func (c *conn) SetWriteDeadline(t time.Time) error {
	return c.change("set", func() { c.writeDeadline = t })
}

// change calls f and wakes waiting Reads, unless c is closed.
func (c *conn) change(op string, f func()) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return c.opError(op, net.ErrClosed)
	}
	f()
	c.changed.fire()
	return nil
}

// opError returns err as a net.TCPConn does: nil and io.EOF as they are.
func (c *conn) opError(op string, err error) error {
	if err == nil || errors.Is(err, io.EOF) {
		return err
	}
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		err = os.NewSyscallError(op, errno)
	}
	return &net.OpError{Op: op, Net: "tcp", Source: c.local, Addr: c.remote, Err: err}
}

// passed reports whether t has come; zero never comes.
func passed(t, now time.Time) bool { return !t.IsZero() && !t.After(now) }
