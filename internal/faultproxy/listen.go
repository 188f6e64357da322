package faultproxy

import (
	"context"
	"net"

	"github.com/holdfast-go/holdfast/internal/localport"
)

// Network is the network of a proxy: TCP, or one in memory of package memnet.
type Network interface {
	Listen() (net.Listener, error)
	ListenAt(addr string) (net.Listener, error) // an address returned by Listen before
	Dial(ctx context.Context, network, addr string) (net.Conn, error)
}

// TCP is the Network of 127.0.0.1.
var TCP Network = tcp{}

type tcp struct{}

func (tcp) Listen() (net.Listener, error) { return localport.Listen() }

func (tcp) ListenAt(addr string) (net.Listener, error) { return net.Listen("tcp", addr) }

func (tcp) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, network, addr)
}

// TB is the part of a test needed by Start.
type TB interface {
	Helper()
	Fatalf(format string, args ...any)
	Cleanup(func())
}

// Start starts a proxy for a test.
func Start(tb TB, target string) *Proxy {
	tb.Helper()
	return StartOn(tb, TCP, target)
}

// StartOn starts a proxy on a network for a test; nil: TCP.
func StartOn(tb TB, network Network, target string) *Proxy {
	tb.Helper()
	if network == nil {
		network = TCP
	}
	p, err := listenOn(network, target)
	if err != nil {
		tb.Fatalf("%v", err)
	}
	tb.Cleanup(p.Close)
	return p
}

// Listen starts a proxy on a free port of 127.0.0.1 before the server at target. It dials target
// for each connection; the server need not be there yet.
func Listen(target string) (*Proxy, error) { return listenOn(TCP, target) }

func listenOn(network Network, target string) (*Proxy, error) {
	l, err := network.Listen()
	if err != nil {
		return nil, err
	}
	p := &Proxy{network: network, addr: l.Addr().String(), port: localport.Of(l), gate: newGate(), target: target,
		listener: l, conns: map[*conn]struct{}{}}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.wg.Go(func() { p.serve(l) })
	return p, nil
}
