package memnet_test

import (
	"context"
	"errors"
	"net"
	"regexp"
	"slices"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/localport"
	"github.com/holdfast-go/holdfast/internal/memnet"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// network is common to memnet and TCP.
type network interface {
	Listen() (net.Listener, error)
	ListenAt(addr string) (net.Listener, error)
	Dial(ctx context.Context, network, addr string) (net.Conn, error)
}

type tcp struct{ net.Dialer }

func (*tcp) Listen() (net.Listener, error) { return localport.Listen() }

func (*tcp) ListenAt(addr string) (net.Listener, error) { return net.Listen("tcp", addr) }

func (d *tcp) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	return d.DialContext(ctx, network, addr)
}

// world is a network in a test.
type world struct {
	*testing.T
	network
	settle func() // waits until all goroutines of a bubble wait
}

// inMemory runs f in a bubble.
func inMemory(t *testing.T, f func(w world, n *memnet.Net)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New()
		f(world{t, n, synctest.Wait}, n)
	})
}

func (w world) listen() net.Listener {
	w.Helper()
	l, err := w.Listen()
	w.must(err)
	w.Cleanup(func() { l.Close() })
	return l
}

func (w world) dial(l net.Listener) conn {
	w.Helper()
	c, err := w.Dial(w.Context(), "tcp", l.Addr().String())
	w.must(err)
	w.Cleanup(func() { c.Close() })
	return c.(conn)
}

func (w world) accept(l net.Listener) conn {
	w.Helper()
	c, err := l.Accept()
	w.must(err)
	w.Cleanup(func() { c.Close() })
	return c.(conn)
}

// conn is common to the connections of both networks.
type conn interface {
	net.Conn
	CloseWrite() error
	SetLinger(sec int) error
}

func (w world) connect() (client, server conn) {
	w.Helper()
	l := w.listen()
	client = w.dial(l)
	return client, w.accept(l)
}

func (w world) must(err error) {
	w.Helper()
	check.Must(w, err)
}

func (w world) is(err error, wants ...error) {
	w.Helper()
	if !slices.ContainsFunc(wants, func(want error) bool { return errors.Is(err, want) }) {
		w.Errorf("error %v, want %v", err, wants)
	}
}

func (w world) send(c net.Conn, text string) {
	w.Helper()
	if n, err := c.Write([]byte(text)); n != len(text) || err != nil {
		w.Fatalf("Write(%q) = %d, %v", text, n, err)
	}
}

func (w world) receive(c net.Conn, want string) {
	w.Helper()
	got := make([]byte, 0, len(want))
	for len(got) < len(want) {
		n, err := c.Read(got[len(got):cap(got)])
		if got = got[:len(got)+n]; err != nil {
			w.Fatalf("read %q, %v; want %q", got, err, want)
		}
	}
	check.Equal(w, "read", string(got), want)
}

func read(c net.Conn) error {
	_, err := c.Read(make([]byte, 1))
	return err
}

func write(c net.Conn) error {
	_, err := c.Write([]byte("x"))
	return err
}

// waiting starts a Read, and returns once it waits if this can be known.
func (w world) waiting(c net.Conn) <-chan error {
	result := make(chan error, 1)
	go func() { result <- read(c) }()
	w.settle()
	return result
}

var addresses = regexp.MustCompile(`127\.0\.0\.1:\d+`)

// wantErr checks an error, its text with "A" for addresses, and Timeout of package net's interface
// of errors.
func (w world) wantErr(err, want error, text string, timeout bool) {
	w.Helper()
	if !errors.Is(err, want) {
		w.Fatalf("error %v; want %v", err, want)
	}
	check.Equal(w, "text of the error", addresses.ReplaceAllString(err.Error(), "A"), text)
	if opErr, ok := errors.AsType[*net.OpError](err); !ok {
		w.Errorf("%#v is no *net.OpError", err)
	} else if opErr.Timeout() != timeout {
		w.Errorf("Timeout of %v is %t", err, !timeout)
	}
}
