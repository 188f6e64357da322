package clients

import (
	"context"
	"crypto/tls"
	"net"
	"testing"

	valkeygo "github.com/valkey-io/valkey-go"

	"github.com/holdfast-go/holdfast/conformance/drivertest"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/providers/valkey"
)

// Valkey dials with valkey-go.
func Valkey(tb testing.TB, target drivertest.Target) (driver.Driver, error) {
	tb.Helper()
	return dialValkey(tb, target, target.Miniredis)
}

// ValkeyRESP2 dials with valkey-go, and speaks RESP2.
func ValkeyRESP2(tb testing.TB, target drivertest.Target) (driver.Driver, error) {
	tb.Helper()
	return dialValkey(tb, target, true)
}

func dialValkey(tb testing.TB, target drivertest.Target, resp2 bool) (driver.Driver, error) {
	tb.Helper()
	opts := valkeygo.ClientOption{
		InitAddress:       target.Addrs,
		Sentinel:          valkeygo.SentinelOption{MasterSet: target.MasterName},
		Username:          target.Username,
		Password:          target.Password,
		TLSConfig:         target.TLS,
		ForceSingleClient: target.Miniredis,
		AlwaysRESP2:       resp2,
		DisableCache:      resp2,
	}
	if target.Miniredis {
		// One connection: the suite has miniredis refuse commands, also those of new connections.
		opts.PipelineMultiplex = -1
	}
	if target.Dial == nil {
		opts.Dialer.Timeout, opts.ConnWriteTimeout = patience, patience
	} else {
		opts.DialCtxFn = func(ctx context.Context, addr string, _ *net.Dialer, _ *tls.Config) (net.Conn, error) {
			return target.Dial(ctx, "tcp", addr)
		}
		opts.Dialer.KeepAlive = -1 // no pings: hours may pass
		opts.ReadBufferEachConn, opts.WriteBufferEachConn, opts.RingScaleEachConn = 4<<10, 4<<10, 6
	}
	client, err := valkeygo.NewClient(opts)
	if err != nil {
		return nil, driver.NotSent(err) // it logs in at once
	}
	tb.Cleanup(func() { closeClient(client.Close, target) })
	return valkey.New(client)
}
