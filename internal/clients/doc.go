// Package clients makes a driver over each client, set up as the documentation of its provider
// advises, for tests of all clients. In real time their timeouts are a minute.
package clients

import (
	"slices"
	"testing"

	"github.com/holdfast-go/holdfast/conformance/drivertest"
	"github.com/holdfast-go/holdfast/internal/memnet"
	"github.com/holdfast-go/holdfast/locker/driver"
)

// Client is one of the clients.
type Client struct {
	// Name is the provider's.
	Name string
	// Dial makes a driver over a client of its own, connected to target. It closes the client by
	// tb.Cleanup, but not the driver: it is the Dial of a Harness.
	Dial func(tb testing.TB, target drivertest.Target) (driver.Driver, error)
}

// All are the clients with different code: goredis, rueidis and redigo.
var All = []Client{
	{"goredis", Goredis}, {"rueidis", Rueidis}, {"redigo", Redigo},
}

// WithFork are All and valkey-go. valkey-go is rueidis under other names, and its provider is
// generated from rueidis's. So long tests that prove nothing new of it run over All.
var WithFork = append(slices.Clip(All), Client{"valkey", Valkey})

// Open makes a driver over a client at the one server at addr. tb closes both.
func (c Client) Open(tb testing.TB, addr string) driver.Driver {
	tb.Helper()
	drv, err := c.Dial(tb, drivertest.Target{Kind: drivertest.Single, Addrs: []string{addr}})
	if err != nil {
		tb.Fatalf("%s: %v", c.Name, err)
	}
	tb.Cleanup(func() { drv.Close() })
	return drv
}

// OpenOn is Open for a miniredis on a network in memory, or for a proxy there.
func (c Client) OpenOn(tb testing.TB, network *memnet.Net, addr string) driver.Driver {
	tb.Helper()
	drv, err := c.Dial(tb, drivertest.Target{
		Kind: drivertest.Memory, Addrs: []string{addr}, Miniredis: true, Dial: network.Dial,
	})
	if err != nil {
		tb.Fatalf("%s: %v", c.Name, err)
	}
	tb.Cleanup(func() { drv.Close() })
	return drv
}

// OpenMini is Open for a miniredis.
func (c Client) OpenMini(tb testing.TB, addr string) driver.Driver {
	tb.Helper()
	drv, err := c.Dial(tb, drivertest.Target{Kind: drivertest.Miniredis, Addrs: []string{addr}, Miniredis: true})
	if err != nil {
		tb.Fatalf("%s: %v", c.Name, err)
	}
	tb.Cleanup(func() { drv.Close() })
	return drv
}
