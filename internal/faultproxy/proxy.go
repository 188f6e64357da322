package faultproxy

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/internal/localport"
	"github.com/holdfast-go/holdfast/internal/resp"
)

// Proxy passes connections on to a server. Its methods may be called from
// several goroutines.
type Proxy struct {
	addr   string
	port   int
	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	wg     sync.WaitGroup

	network Network
	gate    gate
	pause   atomic.Int64 // between the pieces of what is slow
	latency atomic.Int64 // from the arrival of a request until it is sent on

	mu       sync.Mutex
	target   string
	listener net.Listener    // nil while connections are refused
	held     *localport.Held // the port meanwhile
	conns    map[*conn]struct{}
	traps    []*Trap
	requests [][]string
}

// TB is what Start needs of a test.
type TB interface {
	Helper()
	Fatalf(format string, args ...any)
	Cleanup(func())
}

// Start starts a proxy for a test.
func Start(tb TB, target string) *Proxy {
	tb.Helper()
	p, err := Listen(target)
	if err != nil {
		tb.Fatalf("%v", err)
	}
	tb.Cleanup(p.Close)
	return p
}

// Network is where a proxy listens and dials. Package memnet has one in memory.
type Network interface {
	Listen() (net.Listener, error)
	ListenAt(addr string) (net.Listener, error)
	Dial(ctx context.Context, network, addr string) (net.Conn, error)
}

// StartOn is Start on a network; nil: TCP.
func StartOn(tb TB, network Network, target string) *Proxy {
	tb.Helper()
	if network == nil {
		return Start(tb, target)
	}
	l, err := network.Listen()
	if err != nil {
		tb.Fatalf("%v", err)
	}
	p := listenOn(network, l, target)
	tb.Cleanup(p.Close)
	return p
}

// Listen starts a proxy on a free port of 127.0.0.1 before the server at target,
// which is dialed for each connection and need not be there yet.
func Listen(target string) (*Proxy, error) {
	l, err := localport.Listen()
	if err != nil {
		return nil, err
	}
	return listenOn(nil, l, target), nil
}

func listenOn(network Network, l net.Listener, target string) *Proxy {
	p := &Proxy{network: network, addr: l.Addr().String(), port: localport.Of(l), target: target, listener: l,
		conns: map[*conn]struct{}{}}
	p.gate.left.L = &p.gate.mu
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.wg.Go(func() { p.serve(l) })
	return p
}

// gate holds back what is to pass while it is shut. What waits for it does so in a way that
// testing/synctest knows.
type gate struct {
	mu      sync.Mutex
	left    sync.Cond     // passing became 0
	shut    chan struct{} // closed when it opens again; nil: it is open
	passing int
}

func (g *gate) enter() {
	g.mu.Lock()
	for g.shut != nil {
		shut := g.shut
		g.mu.Unlock()
		<-shut
		g.mu.Lock()
	}
	g.passing++
	g.mu.Unlock()
}

func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.passing--; g.passing == 0 {
		g.left.Broadcast()
	}
}

// Addr returns the address that clients dial.
func (p *Proxy) Addr() string { return p.addr }

// Port returns the port that clients dial.
func (p *Proxy) Port() int { return p.port }

// Add puts a rule to work. It panics if the rule makes no sense.
func (p *Proxy) Add(r Rule) *Trap {
	t := newTrap(r)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.traps = append(p.traps, t)
	return t
}

// Fail adds a rule for the first request that contains key.
func (p *Proxy) Fail(key string, f Fault) *Trap { return p.Add(Rule{Match: Contains(key), Fault: f}) }

// received notes a request and finds the trap that it falls into.
func (p *Proxy) received(v resp.Value) *request {
	req := &request{args: v.Args(), raw: v.Raw, at: time.Now()}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.requests = append(p.requests, req.args)
	for _, t := range p.traps {
		if t.takes(req.args) {
			req.trap = t
			break
		}
	}
	return req
}

// Count returns how many matching requests clients have sent, whatever became of
// them. All requests are kept for it until Forget.
func (p *Proxy) Count(m Match) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for _, args := range p.requests {
		if m(args) {
			n++
		}
	}
	return n
}

// Sent returns how many requests that contain key clients have sent.
func (p *Proxy) Sent(key string) int { return p.Count(Contains(key)) }

// Requests returns the requests that clients have sent, by their words, in the
// order in which they came. They must not be changed.
func (p *Proxy) Requests() [][]string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([][]string(nil), p.requests...)
}

// Conns returns the number of open connections.
func (p *Proxy) Conns() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.conns)
}

// CutAll closes all connections.
func (p *Proxy) CutAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		c.kill()
	}
	clear(p.conns)
}

// Freeze holds back all bytes in both directions, and the news of connections
// being closed, until Thaw. Nothing passes after it has returned. A new
// connection is accepted, but no byte comes through.
func (p *Proxy) Freeze() {
	p.gate.mu.Lock()
	defer p.gate.mu.Unlock()
	if p.ctx.Err() != nil {
		return
	}
	if p.gate.shut == nil {
		p.gate.shut = make(chan struct{})
	}
	for p.gate.shut != nil && p.gate.passing > 0 {
		p.gate.left.Wait()
	}
}

// Thaw ends a Freeze; what was held back passes.
func (p *Proxy) Thaw() {
	p.gate.mu.Lock()
	defer p.gate.mu.Unlock()
	if p.gate.shut != nil {
		close(p.gate.shut)
		p.gate.shut = nil
		p.gate.left.Broadcast()
	}
}

// pass calls f as soon as the proxy is not frozen.
func (p *Proxy) pass(f func() error) error {
	p.gate.enter()
	defer p.gate.leave()
	return f()
}

// Refuse makes new connections fail with "connection refused". Open ones stay.
func (p *Proxy) Refuse() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listener == nil {
		return
	}
	if p.network != nil {
		_ = p.listener.Close()
		p.listener = nil
		return
	}
	_ = localport.Close(p.listener)
	p.listener = nil
	if p.ctx.Err() == nil {
		p.held, _ = localport.Hold(p.port) // else another server may be found there
	}
}

// Accept ends a Refuse. It fails if another process has taken the port meanwhile.
func (p *Proxy) Accept() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ctx.Err() != nil {
		return errors.New("faultproxy: closed")
	}
	if p.listener != nil {
		return nil
	}
	if err := p.held.Drop(); err != nil {
		return err
	}
	listen := func(addr string) (net.Listener, error) { return net.Listen("tcp", addr) }
	if p.network != nil {
		listen = p.network.ListenAt
	}
	l, err := listen(p.addr)
	if err != nil {
		return err
	}
	p.listener = l
	p.wg.Go(func() { p.serve(l) })
	return nil
}

// Retarget sends new connections to another server. Open ones stay.
func (p *Proxy) Retarget(target string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.target = target
}

// Close closes the proxy and its connections, and returns when no goroutine of
// its own is left.
func (p *Proxy) Close() {
	p.cancel()
	p.Refuse()
	p.CutAll()
	p.Thaw()
	p.wg.Wait()
	_ = p.held.Drop()
}

// serve accepts connections until the listener is closed.
func (p *Proxy) serve(l net.Listener) {
	for {
		client, err := l.Accept()
		if err != nil {
			return
		}
		c := newConn(p, client)
		p.mu.Lock()
		if p.ctx.Err() != nil {
			p.mu.Unlock()
			client.Close()
			return
		}
		p.conns[c] = struct{}{}
		p.mu.Unlock()
		p.wg.Go(func() {
			c.run()
			p.mu.Lock()
			defer p.mu.Unlock()
			delete(p.conns, c)
		})
	}
}

// dial connects to the server.
func (p *Proxy) dial() (net.Conn, error) {
	p.mu.Lock()
	target := p.target
	p.mu.Unlock()
	if p.network != nil {
		return p.network.Dial(p.ctx, "tcp", target)
	}
	var d net.Dialer
	return d.DialContext(p.ctx, "tcp", target)
}
