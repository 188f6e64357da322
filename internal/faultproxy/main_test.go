package faultproxy_test

import (
	"errors"
	"net"
	"os"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast/internal/faultproxy"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/internal/resp"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds every wait of these tests.
const patience = 20 * time.Second

// eachServer runs a test before miniredis and before a real server.
func eachServer(t *testing.T, test func(t *testing.T, addr string)) {
	t.Helper()
	t.Run("miniredis", func(t *testing.T) {
		t.Parallel()
		test(t, miniredis.RunT(t).Addr())
	})
	t.Run("redis-server", func(t *testing.T) {
		t.Parallel()
		test(t, redistest.Start(t, redistest.Options{}).Addr())
	})
}

func dial(t *testing.T, addr string) *resp.Conn {
	t.Helper()
	tcp, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tcp.Close() })
	if err := tcp.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	return resp.NewConn(tcp)
}

func send(t *testing.T, c *resp.Conn, args ...any) {
	t.Helper()
	if err := c.Send(args...); err != nil {
		t.Fatalf("send %v: %v", args, err)
	}
}

func wantReply(t *testing.T, c *resp.Conn, want any) {
	t.Helper()
	v, err := c.Receive()
	if err != nil {
		t.Fatalf("waiting for reply %v: %v", want, err)
	}
	if got := v.Any(); got != want {
		t.Fatalf("reply %v, want %v", got, want)
	}
}

func wantDo(t *testing.T, c *resp.Conn, want any, args ...any) {
	t.Helper()
	send(t, c, args...)
	wantReply(t, c, want)
}

// wantSilence checks that nothing comes, and that the connection is open.
func wantSilence(t *testing.T, c *resp.Conn) {
	t.Helper()
	if err := c.SetReadDeadline(time.Now().Add(30 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if v, err := c.Receive(); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("got %q, %v; want silence", v.Raw, err)
	}
	if err := c.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
}

// wantClosed checks that the connection ends, and that nothing comes before.
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
