package memnet

import (
	"context"
	"net"
	"net/netip"
	"sync"
	"syscall"
)

// backlog is how many connections wait for Accept before Dial waits too.
const backlog = 128

// listener implements net.Listener.
type listener struct {
	net *Net
	at  netip.AddrPort

	mu      sync.Mutex
	waiting []*conn // for Accept
	closed  bool
	changed signal
}

// enqueue queues a connection for Accept once there is room. Its error is ECONNREFUSED or ctx's.
func (l *listener) enqueue(ctx context.Context, c *conn) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for !l.closed && len(l.waiting) == backlog {
		changed := l.changed.next()
		l.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
		}
		l.mu.Lock()
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	if l.closed {
		return syscall.ECONNREFUSED
	}
	l.waiting = append(l.waiting, c)
	l.changed.fire()
	return nil
}

func (l *listener) Accept() (net.Conn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for !l.closed && len(l.waiting) == 0 {
		changed := l.changed.next()
		l.mu.Unlock()
		<-changed
		l.mu.Lock()
	}
	if l.closed {
		return nil, l.errClosed("accept")
	}
	c := l.waiting[0]
	l.waiting = l.waiting[1:]
	l.changed.fire()
	return c, nil
}

func (l *listener) Addr() net.Addr { return net.TCPAddrFromAddrPort(l.at) }

// Close resets the connections waiting for Accept. The accepted ones stay.
func (l *listener) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return l.errClosed("close")
	}
	l.closed = true
	l.net.remove(l)
	for _, c := range l.waiting {
		_ = c.SetLinger(0)
		_ = c.Close()
	}
	l.changed.fire()
	return nil
}

func (l *listener) errClosed(op string) error {
	return &net.OpError{Op: op, Net: "tcp", Addr: l.Addr(), Err: net.ErrClosed}
}
