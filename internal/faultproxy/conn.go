package faultproxy

import (
	"errors"
	"net"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/internal/resp"
)

// conn is a client's connection and ours to the server. Three goroutines serve
// it: one reads requests, even while they are held back, to see the client go;
// one sends them; one passes on the replies.
type conn struct {
	p      *Proxy
	client net.Conn
	dead   event // the connection is closed on both sides
	gone   event // the client has closed its side
	deaf   event // the connection is half-open

	mu     sync.Mutex
	server net.Conn // nil until dialed
	queue  []*request
	queued chan struct{} // holds a token after the queue grew

	replies pairing
	late    sync.WaitGroup // replies held back by the Filter
}

func newConn(p *Proxy, client net.Conn) *conn {
	return &conn{p: p, client: client, dead: newEvent(), gone: newEvent(), deaf: newEvent(),
		queued: make(chan struct{}, 1)}
}

// run serves the connection until both sides are closed.
func (c *conn) run() {
	defer c.kill()
	var server net.Conn
	dial := func() (err error) { server, err = c.p.dial(); return err }
	if err := c.p.gate.pass(dial); err != nil {
		return
	}
	c.mu.Lock()
	c.server = server
	c.mu.Unlock()
	if c.dead.fired() { // kill may not have seen the server
		server.Close()
		return
	}
	var others sync.WaitGroup
	others.Go(c.readRequests)
	others.Go(c.sendRequests)
	c.passReplies()
	others.Wait()
	c.late.Wait()
}

// kill closes both sides at once.
func (c *conn) kill() {
	c.dead.fire()
	c.client.Close()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.server != nil {
		c.server.Close()
	}
}

// readRequests queues the client's requests until it goes.
func (c *conn) readRequests() {
	var traps []*Trap
	r := resp.NewReader(c.client)
	for {
		v, err := r.ReadRequest()
		if errors.Is(err, resp.ErrProtocol) {
			c.kill()
		}
		if err != nil {
			break
		}
		req := c.p.received(v)
		if req.trap != nil {
			traps = append(traps, req.trap)
		}
		c.mu.Lock()
		c.queue = append(c.queue, req)
		c.mu.Unlock()
		select {
		case c.queued <- struct{}{}:
		default:
		}
	}
	c.gone.fire()
	for _, t := range traps {
		t.gone.fire()
	}
}

// next returns the next request to send, nil when there will be no more.
func (c *conn) next() *request {
	for {
		gone := c.gone.fired() // before the look at the queue: nothing comes after it
		c.mu.Lock()
		if len(c.queue) > 0 {
			req := c.queue[0]
			c.queue = c.queue[1:]
			c.mu.Unlock()
			return req
		}
		c.mu.Unlock()
		if gone {
			return nil
		}
		select {
		case <-c.queued:
		case <-c.gone.ch:
		case <-c.dead.ch:
			return nil
		}
	}
}

// sendRequests sends the queue. When the client has gone and all is sent, it closes only the
// direction to the server: the server still executes everything, and its replies are still seen.
func (c *conn) sendRequests() {
	for req := c.next(); req != nil; req = c.next() {
		if !c.wait(time.Until(req.at) + time.Duration(c.p.latency.Load())) {
			return
		}
		if t := req.trap; t != nil {
			switch t.rule.Fault {
			case Watch:
				t.hit.fire()
			case CutBefore:
				c.kill()
				t.hit.fire()
				return
			case StallRequest:
				t.hit.fire()
				select {
				case <-t.released.ch:
				case <-c.dead.ch:
					return
				}
			}
		}
		c.replies.sent(req)
		if err := c.write(c.server, req.raw); err != nil {
			c.kill()
			return
		}
	}
	if half, ok := c.server.(interface{ CloseWrite() error }); ok {
		_ = c.p.gate.pass(half.CloseWrite) // fails if the server has gone too
	}
}

// passReplies passes on the server's replies until it closes the connection.
func (c *conn) passReplies() {
	mute := false
	r := resp.NewReader(c.server)
	for {
		v, err := r.Read()
		if err != nil {
			break
		}
		if req := c.replies.answered(v); req != nil && req.trap != nil {
			switch req.trap.reply(c) {
			case Cut:
				return
			case CutWithin:
				_ = c.write(c.client, v.Raw[:len(v.Raw)/2]) // the client may have gone
				c.kill()
				req.trap.hit.fire()
				return
			case DropReply:
				mute = true
			}
		}
		if mute || !c.filter(v) {
			continue
		}
		if err := c.write(c.client, v.Raw); err != nil {
			mute = true // the client has gone; the server may still answer
		}
	}
	_ = c.p.gate.pass(func() error { c.kill(); return nil })
}

// reply applies the rule to a reply, and returns the fault.
func (t *Trap) reply(c *conn) Fault {
	t.executed.fire()
	switch t.rule.Fault {
	case DropReply:
		t.hit.fire()
	case Cut:
		c.kill()
		t.hit.fire()
	case Stall, Delay:
		t.hit.fire()
		var late <-chan time.Time // never, unless Delay
		if t.rule.Fault == Delay {
			timer := time.NewTimer(t.rule.By)
			defer timer.Stop()
			late = timer.C
		}
		select {
		case <-late:
		case <-t.released.ch:
		case <-c.gone.ch:
		}
	}
	return t.rule.Fault
}
