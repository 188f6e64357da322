package memnet_test

import (
	"context"
	"io"
	"maps"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/memnet"
)

// TestAsTCP runs each case over memnet and over TCP.
func TestAsTCP(t *testing.T) {
	t.Parallel()
	tests := maps.Clone(ofListeners)
	for name, test := range ofConnections {
		tests[name] = func(w world) {
			client, server := w.connect()
			test(w, client, server)
		}
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			t.Run("tcp", func(t *testing.T) {
				t.Parallel()
				test(world{t, &tcp{}, func() {}})
			})
			t.Run("memory", func(t *testing.T) {
				t.Parallel()
				inMemory(t, func(w world, _ *memnet.Net) { test(w) })
			})
			t.Run("memory with latency", func(t *testing.T) {
				t.Parallel()
				inMemory(t, func(w world, n *memnet.Net) {
					n.Latency = time.Millisecond
					test(w)
				})
			})
		})
	}
}

var (
	longAgo = time.Unix(1, 0)
	never   time.Time
)

// ofConnections are cases about the two ends of a connection.
var ofConnections = map[string]func(w world, client, server conn){
	"bytes arrive in order, in both directions": func(w world, client, server conn) {
		const texts = 100
		for range texts {
			w.send(client, "a request, ")
			w.send(server, "a reply, ")
		}
		w.receive(server, strings.Repeat("a request, ", texts))
		w.receive(client, strings.Repeat("a reply, ", texts))
	},
	"a short Read leaves the rest": func(w world, client, server conn) {
		w.send(client, "abcdef")
		for _, want := range []string{"a", "bc", "def"} {
			w.receive(server, want)
		}
	},
	"a Write is done with its buffer": func(w world, client, server conn) {
		buf := []byte("before")
		_, err := client.Write(buf)
		w.must(err)
		copy(buf, "after!")
		w.receive(server, "before")
	},
	"addresses": func(w world, client, server conn) {
		check.Equal(w, "address of the client", client.LocalAddr().String(), server.RemoteAddr().String())
		check.Equal(w, "address of the server", server.LocalAddr().String(), client.RemoteAddr().String())
		for _, a := range []net.Addr{client.LocalAddr(), client.RemoteAddr()} {
			if tcp, ok := a.(*net.TCPAddr); !ok || tcp.Port <= 0 || a.Network() != "tcp" {
				w.Errorf("an address of %s is the %T %v", a.Network(), a, a)
			}
		}
	},
	"a Read of no bytes": func(w world, client, server conn) {
		w.must(client.SetDeadline(longAgo))
		if n, err := client.Read(nil); n != 0 || err != nil {
			w.Errorf("Read(nil) = %d, %v", n, err)
		}
		w.must(server.Close())
		if n, err := client.Read(nil); n != 0 || err != nil {
			w.Errorf("Read(nil) = %d, %v", n, err)
		}
		w.must(client.Close())
		_, err := client.Read(nil)
		w.wantErr(err, net.ErrClosed, "read tcp A->A: use of closed network connection", false)
	},
	"a Write of no bytes": func(w world, client, server conn) {
		w.send(client, "")
		w.send(client, "x")
		if n, err := server.Read(make([]byte, 2)); n != 1 || err != nil {
			w.Errorf("Read = %d, %v", n, err)
		}
	},

	"Close lets what was sent arrive": func(w world, client, server conn) {
		w.send(client, "first, ")
		w.send(client, "last")
		w.must(client.Close())
		w.receive(server, "first, last")
		for range 2 {
			w.is(read(server), io.EOF)
		}
	},
	"Close ends a waiting Read of the other end": func(w world, client, server conn) {
		result := w.waiting(client)
		w.must(server.Close())
		w.is(<-result, io.EOF)
	},
	"Close ends all Reads of its end": func(w world, client, _ conn) {
		results := []<-chan error{w.waiting(client), w.waiting(client), w.waiting(client)}
		w.must(client.Close())
		for _, result := range results {
			w.wantErr(<-result, net.ErrClosed, "read tcp A->A: use of closed network connection", false)
		}
	},
	"a closed end": func(w world, client, server conn) {
		w.send(server, "unread")
		w.must(client.Close())
		for op, err := range map[string]error{
			"read": read(client), "write": write(client), "close": client.Close(),
		} {
			w.wantErr(err, net.ErrClosed, op+" tcp A->A: use of closed network connection", false)
		}
		for _, err := range []error{
			client.CloseWrite(), client.SetLinger(0), client.SetDeadline(never), client.SetReadDeadline(never),
			client.SetWriteDeadline(never),
		} {
			w.is(err, net.ErrClosed)
		}
	},
	"Writes to a closed end fail after a while": func(w world, client, server conn) {
		w.must(server.Close())
		w.send(client, "nobody knows yet")
		w.is(eventually(w, client), syscall.EPIPE, syscall.ECONNRESET)
		check.Equal(w, "a Read after that succeeds", read(client) == nil, false)
	},
	"CloseWrite ends one direction": func(w world, client, server conn) {
		w.send(client, "request")
		w.must(client.CloseWrite())
		w.must(client.CloseWrite())
		w.receive(server, "request")
		w.is(read(server), io.EOF)
		w.wantErr(write(client), syscall.EPIPE, "write tcp A->A: write: broken pipe", false)
		w.send(server, "reply")
		w.must(server.Close())
		w.receive(client, "reply")
		w.is(read(client), io.EOF)
	},
	"SetLinger(0) makes Close a reset": func(w world, client, server conn) {
		result := w.waiting(client)
		w.must(server.SetLinger(0))
		w.must(server.Close())
		w.wantErr(<-result, syscall.ECONNRESET, "read tcp A->A: read: connection reset by peer", false)
		check.Equal(w, "a Read after that succeeds", read(client) == nil, false)
		w.is(write(client), syscall.EPIPE, syscall.ECONNRESET)
		w.must(client.Close())
	},
	"SetLinger(1) revokes SetLinger(0)": func(w world, client, server conn) {
		w.must(server.SetLinger(0))
		w.must(server.SetLinger(1))
		w.must(server.Close())
		w.is(read(client), io.EOF)
	},
	"a reset ends both directions": func(w world, client, server conn) {
		w.must(client.CloseWrite())
		w.is(read(server), io.EOF)
		w.must(server.SetLinger(0))
		w.must(server.Close())
		w.is(read(client), syscall.ECONNRESET)
	},

	"a read deadline passes": func(w world, client, _ conn) {
		w.must(client.SetReadDeadline(time.Now().Add(10 * time.Millisecond)))
		results := []<-chan error{w.waiting(client), w.waiting(client)}
		for _, result := range results {
			w.wantErr(<-result, os.ErrDeadlineExceeded, "read tcp A->A: i/o timeout", true)
		}
		w.send(client, "written all the same")
	},
	"a read deadline in the past ends a waiting Read": func(w world, client, _ conn) {
		result := w.waiting(client)
		w.must(client.SetReadDeadline(longAgo))
		w.wantErr(<-result, os.ErrDeadlineExceeded, "read tcp A->A: i/o timeout", true)
	},
	"a read deadline comes before what has arrived": func(w world, client, server conn) {
		w.send(server, "abc")
		w.receive(client, "a")
		w.must(client.SetReadDeadline(longAgo))
		w.wantErr(read(client), os.ErrDeadlineExceeded, "read tcp A->A: i/o timeout", true)
		w.must(client.SetReadDeadline(never))
		w.receive(client, "bc")
	},
	"a new read deadline is that of a waiting Read": func(w world, client, server conn) {
		w.must(client.SetReadDeadline(time.Now().Add(time.Hour)))
		result := w.waiting(client)
		w.must(client.SetReadDeadline(never))
		w.settle()
		w.send(server, "x")
		w.must(<-result)
	},
	"a write deadline": func(w world, client, server conn) {
		w.must(client.SetWriteDeadline(longAgo))
		w.wantErr(write(client), os.ErrDeadlineExceeded, "write tcp A->A: i/o timeout", true)
		w.send(server, "read all the same")
		w.receive(client, "read all the same")
		w.must(client.SetWriteDeadline(time.Now().Add(time.Hour)))
		w.send(client, "x")
		w.receive(server, "x")
	},
	"SetDeadline is for both directions": func(w world, client, server conn) {
		w.must(client.SetDeadline(longAgo))
		w.wantErr(read(client), os.ErrDeadlineExceeded, "read tcp A->A: i/o timeout", true)
		w.wantErr(write(client), os.ErrDeadlineExceeded, "write tcp A->A: i/o timeout", true)
		w.must(client.SetDeadline(never))
		w.send(client, "x")
		w.receive(server, "x")
	},
	"Reads at once get all that comes, once": func(w world, client, server conn) {
		results := []<-chan error{w.waiting(client), w.waiting(client), w.waiting(client)}
		w.send(server, "x")
		w.send(server, "yz!")
		for _, result := range results {
			w.must(<-result)
		}
		w.receive(client, "!")
	},
}

// ofListeners are the others.
var ofListeners = map[string]func(w world){
	"nobody listens": func(w world) {
		l := w.listen()
		w.must(l.Close())
		_, err := w.Dial(w.Context(), "tcp", l.Addr().String())
		w.wantErr(err, syscall.ECONNREFUSED, "dial tcp A: connect: connection refused", false)
	},
	"a closed listener": func(w world) {
		l := w.listen()
		client := w.dial(l)
		server := w.accept(l)
		result := make(chan error, 1)
		go func() {
			_, err := l.Accept()
			result <- err
		}()
		w.settle()
		w.must(l.Close())
		w.wantErr(<-result, net.ErrClosed, "accept tcp A: use of closed network connection", false)
		_, err := l.Accept()
		w.wantErr(err, net.ErrClosed, "accept tcp A: use of closed network connection", false)
		w.wantErr(l.Close(), net.ErrClosed, "close tcp A: use of closed network connection", false)
		w.send(client, "still open")
		w.receive(server, "still open")
	},
	"a listener is closed before it accepts": func(w world) {
		l := w.listen()
		client := w.dial(l)
		w.send(client, "x")
		w.must(l.Close())
		w.wantErr(read(client), syscall.ECONNRESET, "read tcp A->A: read: connection reset by peer", false)
	},
	"an address is used once at a time": func(w world) {
		l := w.listen()
		_, err := w.ListenAt(l.Addr().String())
		w.wantErr(err, syscall.EADDRINUSE, "listen tcp A: bind: address already in use", false)
		w.must(l.Close())
		again, err := w.ListenAt(l.Addr().String())
		w.must(err)
		defer again.Close()
		check.Equal(w, "address", again.Addr().String(), l.Addr().String())
		client := w.dial(again)
		w.send(client, "x")
		w.receive(w.accept(again), "x")
	},
	"what was sent before Accept arrives": func(w world) {
		l := w.listen()
		first, second := w.dial(l), w.dial(l)
		w.send(second, "second")
		w.send(first, "first")
		w.must(second.Close())
		for range 2 {
			server := w.accept(l)
			if server.RemoteAddr().String() == first.LocalAddr().String() {
				w.receive(server, "first")
			} else {
				w.receive(server, "second")
			}
		}
	},
	"Accept waits for a dial": func(w world) {
		l := w.listen()
		accepted := make(chan net.Conn)
		go func() {
			c, _ := l.Accept()
			accepted <- c
		}()
		w.settle()
		client := w.dial(l)
		server := <-accepted
		w.Cleanup(func() { server.Close() })
		w.send(client, "x")
		w.receive(server, "x")
	},
	"a dial whose ctx has ended": func(w world) {
		addr := w.listen().Addr().String()
		ctx, cancel := context.WithCancel(w.Context())
		cancel()
		_, err := w.Dial(ctx, "tcp", addr)
		w.wantErr(err, context.Canceled, "dial tcp A: operation was canceled", false)
		ctx, cancel = context.WithDeadline(w.Context(), longAgo)
		defer cancel()
		_, err = w.Dial(ctx, "tcp", addr)
		w.wantErr(err, context.DeadlineExceeded, "dial tcp A: i/o timeout", true)
	},
	"what is no address": func(w world) {
		check.Equal(w, "it connects", check.ErrOf(w.Dial(w.Context(), "tcp", "127.0.0.1")) == nil, false)
		check.Equal(w, "it listens", check.ErrOf(w.ListenAt("127.0.0.1")) == nil, false)
	},
}

// eventually writes until a Write fails.
func eventually(w world, c net.Conn) error {
	w.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for range 10_000 {
		if err := write(c); err != nil {
			return err
		}
		<-tick.C
	}
	w.Fatal("no Write fails")
	return nil
}
