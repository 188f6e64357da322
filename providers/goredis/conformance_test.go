package goredis_test

import (
	"context"
	"net"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/conformance"
	"github.com/holdfast-go/holdfast/conformance/drivertest"
	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/providers/goredis"
)

// TestDriver and TestLocks run one after the other: storms in fake time delay the answers of real
// servers.
func TestDriver(t *testing.T) {
	drivertest.Run(t, drivertest.Harness{Dial: clients.Goredis})
}

func TestLocks(t *testing.T) {
	conformance.Run(t, conformance.Harness{Dial: clients.Goredis, On: clients.LocksOn("goredis")})
}

// TestDefaults runs both suites over a client without ContextTimeoutEnabled.
func TestDefaults(t *testing.T) { clients.RunAll(t, clients.GoredisDefaults) }

// TestKinds runs the suite for adapters over the other kinds of client. A cluster client with
// ReadOnly waits for the list of commands with a mutex, unknown to a bubble.
func TestKinds(t *testing.T) {
	t.Parallel()
	for name, kind := range kinds {
		newDriver := goredis.New
		if name == "single" {
			name, newDriver = "unpipelined", goredis.NewUnpipelined
		}
		if name == "cluster with ReadOnly" {
			continue
		}
		h := drivertest.Harness{
			On: []drivertest.Kind{drivertest.Memory},
			Dial: func(tb testing.TB, target drivertest.Target) (driver.Driver, error) {
				client := kind(&redis.Options{
					Addr: "192.0.2.1:6379", Password: target.Password, ContextTimeoutEnabled: name != "unknown",
					PoolSize: 1000, Protocol: 2, // so that no timer of a pool and no handshake leaves the bubble
					Dialer: func(ctx context.Context, network, _ string) (net.Conn, error) {
						return target.Dial(ctx, network, target.Addrs[0])
					},
				})
				tb.Cleanup(func() { _ = client.Close() })
				return newDriver(client)
			},
		}
		switch name {
		case "unknown":
			h.Lacks = []drivertest.Feature{drivertest.FeatureReplicas, drivertest.FeatureDialError}
		case "cluster":
			h.Lacks = []drivertest.Feature{drivertest.FeatureDialError}
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			drivertest.Run(t, h)
		})
	}
}
