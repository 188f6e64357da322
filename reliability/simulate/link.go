package simulate

import (
	"bytes"
	"context"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"syscall"
	"time"
)

// link is the network between one client and one server.
type link struct {
	seed           uint64
	client, number int
	server         *server

	mu    sync.Mutex
	conns []*conn
	dials int
	held  struct{ up, down, send time.Time } // until when nothing arrives at the server, or at the client, or leaves it
	slow  struct {                           // added to all latencies, and until when
		by    time.Duration
		until time.Time
	}
	slowest  time.Duration // the longest flight of a segment to the server
	drop     int           // how many replies will be lost, each with all later ones of its connection
	cutAfter time.Duration // from the loss to the break of the connection; 0: never
	garble   int           // how many replies will be replaced by an unknown error
}

func (l *link) addr() net.Addr {
	return &net.TCPAddr{IP: net.IPv4(10, 0, byte(l.number), byte(l.client)), Port: 6379}
}

// dialTimeout bounds a dial, beside its ctx.
const dialTimeout = 2 * time.Second

// dial connects. The network may delay it.
func (l *link) dial(ctx context.Context) (net.Conn, error) {
	l.mu.Lock()
	l.dials++
	c := &conn{link: l, rand: rand.New(rand.NewPCG(l.seed, uint64(l.client<<32|l.number<<16|l.dials))), up: newStream(), down: newStream()}
	l.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	for {
		l.mu.Lock()
		next := later(l.held.send, later(l.held.up, l.held.down))
		wait := max(time.Until(next), 0) + c.latency()
		l.mu.Unlock()
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil, &net.OpError{Op: "dial", Net: "tcp", Addr: l.addr(), Err: ctx.Err()}
		}
		l.mu.Lock()
		if again := later(l.held.send, later(l.held.up, l.held.down)); again.After(time.Now()) {
			l.mu.Unlock()
			continue
		}
		l.conns = append(l.conns, c)
		l.mu.Unlock()
		if !l.server.serve(&endpoint{conn: c, in: c.up, out: c.down}) {
			return nil, &net.OpError{Op: "dial", Net: "tcp", Addr: l.addr(), Err: syscall.ECONNREFUSED}
		}
		return &endpoint{conn: c, in: c.down, out: c.up, client: true}, nil
	}
}

// reply returns a reply as it arrives: itself, something else, or nil. The mutex is held.
func (l *link) reply(c *conn, p []byte) []byte {
	switch {
	case c.mute:
		return nil
	case l.drop > 0 && c.commands:
		l.drop--
		c.mute = true
		if l.cutAfter > 0 {
			l.breakAfter(c, l.cutAfter, false)
		}
		return nil
	case l.garble > 0 && c.commands && bytes.IndexByte(p, '\n') > 0:
		l.garble--
		return []byte("-ERR the proxy does not know what became of it\r\n")
	}
	return append([]byte(nil), p...)
}

// ofLock reports whether a client sends a command of a lock.
func ofLock(p []byte) bool {
	return slices.ContainsFunc([]string{"evalsha", "EVALSHA", "SET\r\n", "set\r\n"}, func(s string) bool { return bytes.Contains(p, []byte(s)) })
}

// each calls f for every open connection.
func (l *link) each(f func(*conn)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conns = slices.DeleteFunc(l.conns, func(c *conn) bool { return c.over })
	for _, c := range l.conns {
		if !c.dead {
			f(c)
		}
	}
}

// cut resets all connections.
func (l *link) cut(lose bool) { l.each(func(c *conn) { c.reset(lose) }) }

// keepAlive is when the system breaks a connection with a silent other end.
const keepAlive = 15 * time.Second

// forget makes all connections half-open: all segments are lost, and the ends learn it later.
func (l *link) forget(told time.Duration) {
	l.each(func(c *conn) {
		c.dead = true
		c.up.segments, c.down.segments = nil, nil
		l.breakAfter(c, told, true)
	})
}

// breakAfter resets a connection later.
func (l *link) breakAfter(c *conn, d time.Duration, lose bool) {
	time.AfterFunc(d, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		c.reset(lose)
	})
}

// lag delays segments of the open connections: later connections overtake them.
func (l *link) lag(by, lasts time.Duration) {
	l.each(func(c *conn) { c.slow, c.slowEnds = by, time.Now().Add(lasts) })
}

// delay delays all segments.
func (l *link) delay(by, lasts time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.slow.by, l.slow.until = by, time.Now().Add(lasts)
}

// hold delays segments at the server, at the client, or when they leave it, until a time.
func (l *link) hold(lasts time.Duration, up, down, send bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	until := time.Now().Add(lasts)
	for _, h := range []struct {
		on bool
		t  *time.Time
	}{{up, &l.held.up}, {down, &l.held.down}, {send, &l.held.send}} {
		if h.on {
			*h.t = later(*h.t, until)
		}
	}
}

// lose loses the next n replies, and breaks their connections a while later; 0: never.
func (l *link) lose(n int, cutAfter time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.drop, l.cutAfter = n, cutAfter
}

// spoil replaces the next n replies by an unknown error.
func (l *link) spoil(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.garble = n
}

// heal ends all faults of the link. Silent connections break.
func (l *link) heal() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.drop, l.garble, l.slow.by = 0, 0, 0
	for _, c := range l.conns {
		if c.dead || c.mute {
			c.reset(true)
		}
	}
}
