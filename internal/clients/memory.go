package clients

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"testing"

	"github.com/alicebob/miniredis/v2"
	redigoclient "github.com/gomodule/redigo/redis"
	"github.com/redis/go-redis/v9"
	rueidisclient "github.com/redis/rueidis"
	valkeyclient "github.com/valkey-io/valkey-go"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/providers/goredis"
	"github.com/holdfast-go/holdfast/providers/redigo"
	"github.com/holdfast-go/holdfast/providers/rueidis"
	"github.com/holdfast-go/holdfast/providers/valkey"
)

// address is never dialed.
const address = "127.0.0.1:6379"

func goredisInMemory(m *miniredis.Miniredis) (driver.Driver, func() error, error) {
	client := redis.NewClient(&redis.Options{
		Addr: address, ContextTimeoutEnabled: true,
		Dialer: func(context.Context, string, string) (net.Conn, error) { return m.Dial() },
	})
	drv, err := goredis.New(client)
	return drv, client.Close, err
}

func rueidisInMemory(m *miniredis.Miniredis) (driver.Driver, func() error, error) {
	client, err := rueidisclient.NewClient(rueidisclient.ClientOption{
		InitAddress: []string{address}, ForceSingleClient: true, AlwaysRESP2: true, DisableCache: true,
		ReadBufferEachConn: 4 << 10, WriteBufferEachConn: 4 << 10, RingScaleEachConn: 6,
		Dialer:            net.Dialer{KeepAlive: -1}, // no pings: hours may pass
		PipelineMultiplex: -1,                        // one connection: of several one is chosen at random
		DialCtxFn:         func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error) { return m.Dial() },
	})
	if err != nil {
		return nil, nil, err
	}
	drv, err := rueidis.New(client)
	return drv, func() error { client.Close(); return nil }, err
}

func valkeyInMemory(m *miniredis.Miniredis) (driver.Driver, func() error, error) {
	client, err := valkeyclient.NewClient(valkeyclient.ClientOption{
		InitAddress: []string{address}, ForceSingleClient: true, AlwaysRESP2: true, DisableCache: true,
		ReadBufferEachConn: 4 << 10, WriteBufferEachConn: 4 << 10, RingScaleEachConn: 6,
		Dialer: net.Dialer{KeepAlive: -1}, PipelineMultiplex: -1, // as rueidisInMemory
		DialCtxFn: func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error) { return m.Dial() },
	})
	if err != nil {
		return nil, nil, err
	}
	drv, err := valkey.New(client)
	return drv, func() error { client.Close(); return nil }, err
}

func redigoInMemory(m *miniredis.Miniredis) (driver.Driver, func() error, error) {
	pool := &redigoclient.Pool{MaxIdle: 4, DialContext: func(ctx context.Context) (redigoclient.Conn, error) {
		return redigoclient.DialContext(ctx, "tcp", address, redigoclient.DialContextFunc(
			func(context.Context, string, string) (net.Conn, error) { return m.Dial() }))
	}}
	drv, err := redigo.New(pool)
	return drv, pool.Close, err
}

// NewMemory makes a miniredis for a bubble of testing/synctest, by whose clock keys expire. tb
// closes it.
func NewMemory(tb testing.TB) *miniredis.Miniredis {
	tb.Helper()
	m := miniredis.NewMiniRedis()
	m.ClockTTL(true)
	tb.Cleanup(m.Close)
	return m
}

// OpenMemory makes a driver over go-redis in memory. tb closes both.
func OpenMemory(tb testing.TB, m *miniredis.Miniredis) driver.Driver {
	tb.Helper()
	drv, closeClient, err := goredisInMemory(m)
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
