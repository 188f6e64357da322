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
	network Network
	addr    string
	port    int
	ctx     context.Context // ends with Close
	cancel  context.CancelFunc
	wg      sync.WaitGroup

	gate    gate         // all bytes pass through it
	pause   atomic.Int64 // between the pieces of a message; see Slow
	latency atomic.Int64 // from the arrival of a request until it is sent on
	filter  atomic.Pointer[Filter]

	mu       sync.Mutex
	target   string
	listener net.Listener    // nil while connections are refused
	held     *localport.Held // the port meanwhile
	conns    map[*conn]struct{}
	traps    []*Trap
	requests [][]string
}

// Addr returns the address for clients to dial.
func (p *Proxy) Addr() string { return p.addr }

// Port returns the port for clients to dial.
func (p *Proxy) Port() int { return p.port }

// Add puts a rule to work. It panics if the rule makes no sense.
func (p *Proxy) Add(r Rule) *Trap {
	t := newTrap(r)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.traps = append(p.traps, t)
	return t
}

// Fail adds a rule for the first request containing key.
func (p *Proxy) Fail(key string, f Fault) *Trap { return p.Add(Rule{Match: Contains(key), Fault: f}) }

// received notes a request and finds its trap.
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

// Sent returns how many requests containing key clients have sent.
func (p *Proxy) Sent(key string) int { return p.Count(Contains(key)) }

// Requests returns the clients' requests, by their words, in the order of arrival. They must not be
// changed.
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
func (p *Proxy) Freeze() { p.gate.close() }

// Thaw ends a Freeze; the bytes held back pass.
func (p *Proxy) Thaw() { p.gate.open() }

// Refuse makes new connections fail with "connection refused". Open ones stay.
func (p *Proxy) Refuse() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listener == nil {
		return
	}
	_ = localport.Close(p.listener)
	p.listener = nil
	if p.network == TCP && p.ctx.Err() == nil {
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
	l, err := p.network.ListenAt(p.addr)
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
	p.gate.remove()
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
	return p.network.Dial(p.ctx, "tcp", target)
}
