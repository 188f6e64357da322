package faultproxy

import (
	"net"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/internal/resp"
)

// ResetAll closes all connections with a reset (RST) on both sides, as a restarted host does.
func (p *Proxy) ResetAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		c.mu.Lock()
		for _, side := range []net.Conn{c.client, c.server} {
			if tcp, ok := side.(interface{ SetLinger(int) error }); ok {
				_ = tcp.SetLinger(0)
			}
		}
		c.mu.Unlock()
		c.kill()
	}
	clear(p.conns)
}

// HalfOpen makes all open connections half-open forever: all bytes in either direction are lost,
// and neither side gets an error. If a client closes its side, the connection ends. New connections
// pass.
func (p *Proxy) HalfOpen() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		c.deaf.fire()
	}
}

// pieceLen is the number of bytes that pass at once if Slow is set.
const pieceLen = 16

// Slow passes on each message in pieces of 16 bytes with a pause behind each, from the next message
// on, in both directions; 0: at once.
func (p *Proxy) Slow(pause time.Duration) { p.pause.Store(int64(pause)) }

// Latency makes the round trip of each request longer by d, from the next request on; 0: no longer.
// Unlike Delay it holds back no later request: those sent together are answered together.
func (p *Proxy) Latency(d time.Duration) { p.latency.Store(int64(d)) }

// Filter decides on a reply, or a message of Pub/Sub, from the server: for how long the proxy holds
// it back; negative: forever. Later messages are not held back.
type Filter func(resp.Value) time.Duration

// Filter makes f decide on all messages of servers, from the next reply on; nil: all pass at once.
// The connections stay open. A client misses a reply if f loses or delays one.
func (p *Proxy) Filter(f Filter) { p.filter.Store(&f) }

// Messages returns a Filter that holds back messages of Pub/Sub for d; negative: forever.
func Messages(d time.Duration) Filter {
	return func(v resp.Value) time.Duration {
		if len(v.Elems) == 3 && (v.Elems[0].Text == "message" || v.Elems[0].Text == "smessage") {
			return d
		}
		return 0
	}
}

// filter reports whether v passes now. If it is late, it passes later.
func (c *conn) filter(v resp.Value) bool {
	f := c.p.filter.Load()
	if f == nil || *f == nil {
		return true
	}
	late := (*f)(v)
	if late > 0 {
		c.late.Go(func() {
			if c.wait(late) {
				_ = c.write(c.client, v.Raw)
			}
		})
	}
	return late == 0
}

// write passes bytes on to one side, unless the connection is half-open.
func (c *conn) write(to net.Conn, raw []byte) error {
	pause := time.Duration(c.p.pause.Load())
	for len(raw) > 0 {
		n := len(raw)
		if pause > 0 {
			n = min(n, pieceLen)
		}
		if err := c.p.gate.pass(func() error { return c.deliver(to, raw[:n]) }); err != nil {
			return err
		}
		raw = raw[n:]
		c.wait(pause)
	}
	return nil
}

// wait waits for d and reports whether the connection still lives.
func (c *conn) wait(d time.Duration) bool {
	if d <= 0 {
		return true
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-c.dead.ch:
		return false
	}
}

func (c *conn) deliver(to net.Conn, raw []byte) error {
	if c.deaf.fired() {
		return nil
	}
	_, err := to.Write(raw)
	return err
}

// Forget drops the requests noted so far, and the rules at their end: a proxy under an endless load
// keeps all of them otherwise.
func (p *Proxy) Forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.requests = nil
	p.traps = slices.DeleteFunc(p.traps, func(t *Trap) bool {
		return t.released.fired() || !t.rule.Every && t.seen >= max(t.rule.Nth, 1)
	})
}
