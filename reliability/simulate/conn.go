package simulate

import (
	"math/rand/v2"
	"net"
	"os"
	"syscall"
	"time"
)

// conn is one connection of a link.
type conn struct {
	link     *link
	rand     *rand.Rand // of its latency
	up, down *stream    // to the server, and back

	slow     time.Duration // added to the latency of segments to the server, until slowEnds
	slowEnds time.Time
	dead     bool // half-open: nothing arrives any more
	over     bool // it was reset
	mute     bool // the client receives nothing any more
	commands bool // it has sent a lock's command
}

// endpoint is one end of a connection. It implements net.Conn.
type endpoint struct {
	*conn
	in, out *stream
	client  bool

	closed    bool
	readUntil time.Time
}

// Read implements net.Conn.
func (e *endpoint) Read(p []byte) (int, error) {
	for {
		n, wait, err := e.read(p)
		if n > 0 || err != nil {
			return n, err
		}
		e.await(wait)
	}
}

// read reads the arrived bytes. If there are none, it returns the wait until the earliest next try;
// negative: until woken.
func (e *endpoint) read(p []byte) (n int, wait time.Duration, err error) {
	l := e.link
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if e.closed {
		return 0, 0, net.ErrClosed
	}
	held := l.held.up
	if e.client {
		held = l.held.down
	}
	n, next, err := e.in.take(p, now, held)
	if n > 0 && !e.client {
		l.slowest = max(l.slowest, now.Sub(e.in.sent))
	}
	if n > 0 || err != nil {
		return n, 0, err
	}
	if until := e.readUntil; !until.IsZero() {
		if !until.After(now) {
			return 0, 0, os.ErrDeadlineExceeded
		}
		if next.IsZero() || until.Before(next) {
			next = until
		}
	}
	if next.IsZero() {
		return 0, -1, nil
	}
	return 0, next.Sub(now), nil
}

func (e *endpoint) await(wait time.Duration) {
	if wait < 0 {
		<-e.in.wake
		return
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-e.in.wake:
	case <-timer.C:
	}
}

// Write implements net.Conn. It never blocks.
func (e *endpoint) Write(p []byte) (int, error) {
	l := e.link
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case e.closed:
		return 0, net.ErrClosed
	case e.over:
		return 0, syscall.EPIPE
	case e.dead:
		return len(p), nil
	}
	if e.client {
		e.commands = e.commands || ofLock(p)
		e.out.push(segment{data: append([]byte(nil), p...), sent: time.Now(), at: e.arrival(l.held.send, e.slowBy())})
		return len(p), nil
	}
	if data := l.reply(e.conn, p); data != nil {
		e.out.push(segment{data: data, at: e.arrival(time.Time{}, 0)})
	}
	return len(p), nil
}

// arrival returns when a segment arrives if it is sent now, or as soon as it may be.
func (c *conn) arrival(leave time.Time, extra time.Duration) time.Time {
	now := time.Now()
	if c.link.slow.until.After(now) {
		extra += c.link.slow.by
	}
	return later(now, leave).Add(extra + c.latency())
}

// latency returns a near network's. Two segments rarely arrive at the same instant, so the seed
// decides their order.
func (c *conn) latency() time.Duration {
	return 50*time.Microsecond + time.Duration(c.rand.IntN(int(400*time.Microsecond)))
}

func (c *conn) slowBy() time.Duration {
	if c.slowEnds.After(time.Now()) {
		return c.slow
	}
	return 0
}

// Close implements net.Conn. Segments in flight still arrive.
func (e *endpoint) Close() error {
	l := e.link
	l.mu.Lock()
	defer l.mu.Unlock()
	if e.closed {
		return net.ErrClosed
	}
	e.closed = true
	e.in.poke()
	if !e.dead {
		e.out.push(segment{at: e.arrival(time.Time{}, 0), end: true})
	}
	return nil
}

// reset breaks the connection: the client learns it at once. Segments in flight to the server may
// be lost.
func (c *conn) reset(lose bool) {
	if c.over {
		return
	}
	c.dead, c.over = true, true
	c.down.broken = syscall.ECONNRESET
	c.down.poke()
	c.up.shut(time.Now(), lose)
}

// SetReadDeadline implements net.Conn.
func (e *endpoint) SetReadDeadline(t time.Time) error {
	e.link.mu.Lock()
	defer e.link.mu.Unlock()
	e.readUntil = t
	e.in.poke()
	return nil
}

// SetDeadline implements net.Conn.
func (e *endpoint) SetDeadline(t time.Time) error { return e.SetReadDeadline(t) }

// SetWriteDeadline implements net.Conn.
func (e *endpoint) SetWriteDeadline(time.Time) error { return nil }

// LocalAddr implements net.Conn.
func (e *endpoint) LocalAddr() net.Addr { return e.link.addr() }

// RemoteAddr implements net.Conn.
func (e *endpoint) RemoteAddr() net.Addr { return e.link.addr() }
