package faultproxy_test

import (
	"errors"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/faultproxy"
	"github.com/holdfast-go/holdfast/internal/memnet"
	"github.com/holdfast-go/holdfast/internal/memredis"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/internal/resp"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds every wait of these tests.
const patience = 2 * time.Minute

// place is a server on a network.
type place struct {
	network faultproxy.Network
	addr    string
}

// eachServer runs a test before miniredis in fake time, and before a real server.
func eachServer(t *testing.T, test func(t *testing.T, s place)) {
	t.Helper()
	both(t, func(t *testing.T, n *memnet.Net) { test(t, mini(t, n).place) }, "redis-server", func(t *testing.T) {
		test(t, place{faultproxy.TCP, redistest.Start(t, redistest.Options{}).Addr()})
	})
}

// eachNetwork runs a test in fake time, and over TCP.
func eachNetwork(t *testing.T, test func(t *testing.T, network faultproxy.Network)) {
	t.Helper()
	both(t, func(t *testing.T, n *memnet.Net) { test(t, n) }, "tcp", func(t *testing.T) { test(t, faultproxy.TCP) })
}

func both(t *testing.T, memory func(*testing.T, *memnet.Net), server string, test func(*testing.T)) {
	t.Helper()
	t.Run("memory", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) { memory(t, memnet.New()) })
	})
	t.Run(server, func(t *testing.T) {
		t.Parallel()
		test(t)
	})
}

// inFakeTime reports whether the test runs in a bubble.
func (s place) inFakeTime() bool { return s.network != faultproxy.TCP }

type miniServer struct {
	*miniredis.Miniredis
	place
	close func()
}

func mini(t *testing.T, network faultproxy.Network) miniServer {
	t.Helper()
	if n, ok := network.(*memnet.Net); ok {
		s := memredis.Start(t, n)
		return miniServer{s.Miniredis, place{n, s.Addr()}, s.Close}
	}
	m := miniredis.RunT(t)
	return miniServer{m, place{network, m.Addr()}, m.Close}
}

// proxy starts a proxy before the server.
func (s place) proxy(t *testing.T) *faultproxy.Proxy {
	t.Helper()
	return faultproxy.StartOn(t, s.network, s.addr)
}

// dial connects to a server or a proxy of the network.
func (s place) dial(t *testing.T, addr string) *resp.Conn {
	t.Helper()
	c, err := s.network.Dial(t.Context(), "tcp", addr)
	check.Must(t, err)
	t.Cleanup(func() { c.Close() })
	check.Must(t, c.SetDeadline(time.Now().Add(patience)))
	return resp.NewConn(c)
}

func send(t *testing.T, c *resp.Conn, args ...any) {
	t.Helper()
	check.Must(t, c.Send(args...))
}

func wantReply(t *testing.T, c *resp.Conn, want any) {
	t.Helper()
	v, err := c.Receive()
	check.Must(t, err)
	check.Equal(t, "reply", v.Any(), want)
}

func wantDo(t *testing.T, c *resp.Conn, want any, args ...any) {
	t.Helper()
	send(t, c, args...)
	wantReply(t, c, want)
}

// wantSilence checks in fake time that nothing comes, and that the connection is open. Real time
// proves no silence.
func wantSilence(t *testing.T, s place, c *resp.Conn) {
	t.Helper()
	if !s.inFakeTime() {
		return
	}
	check.Must(t, c.SetReadDeadline(time.Now().Add(time.Second)))
	if v, err := c.Receive(); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("got %q, %v; want silence", v.Raw, err)
	}
	check.Must(t, c.SetReadDeadline(time.Now().Add(patience)))
}

// wantTook checks how much time has passed since start, if it is fake.
func wantTook(t *testing.T, s place, start time.Time, want time.Duration) {
	t.Helper()
	if got := time.Since(start); s.inFakeTime() && got != want {
		t.Errorf("it took %v, want %v", got, want)
	}
}

// wantClosed checks that the connection ends, with nothing before.
func wantClosed(t *testing.T, c *resp.Conn) {
	t.Helper()
	v, err := c.Receive()
	if err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("got %q, %v; want a closed connection", v.Raw, err)
	}
}

func wait(t *testing.T, what string, event <-chan struct{}) {
	t.Helper()
	timeout := time.NewTimer(patience)
	defer timeout.Stop()
	select {
	case <-event:
	case <-timeout.C:
		t.Fatalf("waited for %s in vain", what)
	}
}

func wantNotYet(t *testing.T, what string, event <-chan struct{}) {
	t.Helper()
	select {
	case <-event:
		t.Fatalf("%s too early", what)
	default:
	}
}

var isSet = faultproxy.Command("SET")
