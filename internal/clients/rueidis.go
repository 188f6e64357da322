package clients

import (
	"context"
	"crypto/tls"
	"net"
	"testing"
	"time"

	redis "github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/conformance/drivertest"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/providers/rueidis"
)

// Rueidis dials with rueidis.
func Rueidis(tb testing.TB, target drivertest.Target) (driver.Driver, error) {
	tb.Helper()
	return dialRueidis(tb, target, target.Miniredis)
}

// RueidisRESP2 dials with rueidis, and speaks RESP2.
func RueidisRESP2(tb testing.TB, target drivertest.Target) (driver.Driver, error) {
	tb.Helper()
	return dialRueidis(tb, target, true)
}

func dialRueidis(tb testing.TB, target drivertest.Target, resp2 bool) (driver.Driver, error) {
	tb.Helper()
	opts := redis.ClientOption{
		InitAddress:       target.Addrs,
		Sentinel:          redis.SentinelOption{MasterSet: target.MasterName},
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
	client, err := redis.NewClient(opts)
	if err != nil {
		return nil, driver.NotSent(err) // it logs in at once
	}
	tb.Cleanup(func() { closeClient(client.Close, target) })
	return rueidis.New(client)
}

// closeClient closes a client of target. That of a cluster it closes again a second later: a redirection
// in flight may have added a connection.
func closeClient(closes func(), target drivertest.Target) {
	closes()
	if target.Kind == drivertest.Cluster {
		time.AfterFunc(time.Second, closes)
	}
}
