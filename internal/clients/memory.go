package clients

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/conformance/drivertest"
	"github.com/holdfast-go/holdfast/internal/faultproxy"
	"github.com/holdfast-go/holdfast/internal/memnet"
	"github.com/holdfast-go/holdfast/internal/memredis"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
)

// InMemory makes a driver over a client with connections from dial: in bubbles of testing/synctest
// they stay in the process. closeClient closes the client, once the driver is closed.
func (c Client) InMemory(dial func() (net.Conn, error)) (drv driver.Driver, closeClient func() error, err error) {
	var owner cleanups
	drv, err = c.Dial(&owner, drivertest.Target{
		Kind: drivertest.Memory, Addrs: []string{"127.0.0.1:6379"}, Miniredis: true, // the address is never dialed
		Dial: func(context.Context, string, string) (net.Conn, error) { return dial() },
	})
	return drv, owner.run, err
}

// cleanups is the testing.TB of a client closed by a function of its own.
type cleanups struct {
	testing.TB
	list []func()
}

func (*cleanups) Helper() {}

func (c *cleanups) Cleanup(f func()) { c.list = append(c.list, f) }

func (c *cleanups) run() error {
	for len(c.list) > 0 {
		last := len(c.list) - 1
		f := c.list[last]
		c.list = c.list[:last]
		f()
	}
	return nil
}

// NewMemory starts a miniredis on a network in memory without latency. tb closes it.
func NewMemory(tb testing.TB) *memredis.Server {
	tb.Helper()
	return memredis.Start(tb, memnet.New())
}

// OpenMemory makes a driver over go-redis in memory. tb closes both.
func OpenMemory(tb testing.TB, m *memredis.Server) driver.Driver {
	tb.Helper()
	drv, closeClient, err := All[0].InMemory(m.Dial)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := drv.Close(); err != nil && !errors.Is(err, locker.ErrClosed) {
			tb.Errorf("close: %v", err)
		}
		if err := closeClient(); err != nil {
			tb.Errorf("close: %v", err)
		}
	})
	return drv
}

// Bubble runs f in a bubble of testing/synctest, and lets a minute of fake time pass at its end:
// clients end some of their goroutines after they were closed.
func Bubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		t.Cleanup(func() { time.Sleep(time.Minute) }) //nolint:forbidigo // fake time
		f(t)
	})
}

// Proxied starts a miniredis on a network in memory, and a proxy in front of it.
func Proxied(tb testing.TB) (*memredis.Server, *faultproxy.Proxy) {
	tb.Helper()
	m := memredis.Start(tb, memnet.New())
	return m, faultproxy.StartOn(tb, m.Net, m.Addr())
}
