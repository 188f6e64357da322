// Package memnet is a network in memory with the behaviour of TCP. It starts no goroutine and waits
// on channels and timers only: in a bubble of testing/synctest fake time passes while somebody
// reads, dials or accepts.
//
// It differs from TCP on purpose:
//
//   - A Write never waits: there are no windows.
//   - A Read returns bytes of one Write at most.
//   - Closing an end with unread data sends an end of the stream and not a reset.
//   - A reset drops unread data, as the standard says; Linux still delivers it.
package memnet

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"time"
)

const (
	firstPort  = 2_000  // of listeners; servers of tests have higher ones on TCP
	firstLocal = 32_768 // port of dialers
	lastPort   = 65_535
)

// Net is a network with addresses of 127.0.0.1 of its own. Make one with New. It may be used by
// several goroutines.
type Net struct {
	// Latency is the time from a Write, a Close or a reset until the other end learns of it. Dial
	// takes twice as long. Set it before use.
	Latency time.Duration

	mu        sync.Mutex
	listened  int // addresses given out by Listen
	dialed    int
	listeners map[netip.AddrPort]*listener
}

// New returns a network without listeners or latency.
func New() *Net { return &Net{listeners: map[netip.AddrPort]*listener{}} }

// Listen listens on a new address.
func (n *Net) Listen() (net.Listener, error) {
	n.mu.Lock()
	addr := loopback(firstPort + n.listened)
	n.listened++
	n.mu.Unlock()
	return n.ListenAt(addr.String())
}

// ListenAt listens on an address, such as one returned by Listen before.
func (n *Net) ListenAt(addr string) (net.Listener, error) {
	at, err := netip.ParseAddrPort(addr)
	if err != nil {
		return nil, &net.OpError{Op: "listen", Net: "tcp", Err: err}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.listeners[at] != nil {
		return nil, &net.OpError{Op: "listen", Net: "tcp", Addr: net.TCPAddrFromAddrPort(at),
			Err: os.NewSyscallError("bind", syscall.EADDRINUSE)}
	}
	l := &listener{net: n, at: at}
	n.listeners[at] = l
	return l, nil
}

// Dial connects to a listener. It waits while too many connections wait for Accept. The connection
// has the methods CloseWrite and SetLinger of a net.TCPConn.
func (n *Net) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	at, err := netip.ParseAddrPort(addr)
	if err != nil {
		return nil, &net.OpError{Op: "dial", Net: network, Err: err}
	}
	c, err := n.connect(ctx, at)
	switch {
	case err == nil:
		return c, nil
	case errors.Is(err, syscall.ECONNREFUSED):
		return nil, &net.OpError{Op: "dial", Net: network, Addr: net.TCPAddrFromAddrPort(at),
			Err: os.NewSyscallError("connect", err)}
	default: // ctx has ended: this dials nothing, and returns the error of package net for it
		return new(net.Dialer).DialContext(ctx, network, addr)
	}
}

// connect returns the client's end of a new connection. Its error is ECONNREFUSED or ctx's.
func (n *Net) connect(ctx context.Context, at netip.AddrPort) (*conn, error) {
	if n.Latency > 0 {
		roundTrip := time.NewTimer(2 * n.Latency)
		defer roundTrip.Stop()
		select {
		case <-roundTrip.C:
		case <-ctx.Done():
		}
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	l, local := n.route(at)
	if l == nil {
		return nil, syscall.ECONNREFUSED
	}
	client, server := newPair(n.Latency, local, at)
	return client, l.enqueue(ctx, server)
}

// remove frees the address of a listener.
func (n *Net) remove(l *listener) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.listeners, l.at)
}

// route returns the listener at an address, nil if there is none, and an address for a dialer.
func (n *Net) route(at netip.AddrPort) (*listener, netip.AddrPort) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.dialed++
	return n.listeners[at], loopback(firstLocal + n.dialed%(lastPort-firstLocal))
}

func loopback(port int) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), uint16(port))
}
