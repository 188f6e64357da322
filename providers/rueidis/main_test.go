package rueidis_test

import (
	"context"
	"crypto/tls"
	"net"
	"testing"
	"time"

	redis "github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/providers/rueidis"
)

var (
	server = redistest.Share(func(ctx context.Context) (*redistest.Server, error) {
		return redistest.Launch(ctx, redistest.Options{})
	})
	cluster = redistest.Share(func(ctx context.Context) (*redistest.Cluster, error) {
		return redistest.LaunchCluster(ctx, 3, redistest.Options{})
	})
)

func TestMain(m *testing.M) { clients.VerifyNoLeaks(redistest.CloseAfter(m, server, cluster)) }

const (
	patience = time.Second // time limit of a call's context, in the fake time of a bubble
	forever  = time.Hour
)

// clientModes are the ways rueidis uses its connections.
var clientModes = map[string]func(*redis.ClientOption){
	"default":               func(*redis.ClientOption) {},
	"DisableRetry":          func(o *redis.ClientOption) { o.DisableRetry = true },
	"AlwaysPipelining":      func(o *redis.ClientOption) { o.AlwaysPipelining = true },
	"DisableAutoPipelining": func(o *redis.ClientOption) { o.DisableAutoPipelining = true },
	"one connection":        func(o *redis.ClientOption) { o.PipelineMultiplex = -1 },
}

// single returns the options of a client that miniredis can serve, on a network in memory.
func single(dial func(ctx context.Context, network, addr string) (net.Conn, error), addr string) redis.ClientOption {
	return redis.ClientOption{
		InitAddress: []string{addr}, DisableCache: true, ForceSingleClient: true, AlwaysRESP2: true,
		Dialer: net.Dialer{KeepAlive: -1}, // no pings: hours may pass
		DialCtxFn: func(ctx context.Context, addr string, _ *net.Dialer, _ *tls.Config) (net.Conn, error) {
			// Like a net.Dialer, it does not call ctx's Err: the driver takes such a call for the
			// begin of a send.
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			return dial(ctx, "tcp", addr)
		},
		ReadBufferEachConn: 4 << 10, WriteBufferEachConn: 4 << 10,
	}
}

func newClient(tb testing.TB, opts redis.ClientOption) redis.Client {
	tb.Helper()
	client, err := redis.NewClient(opts)
	check.Must(tb, err)
	tb.Cleanup(client.Close)
	return client
}

func newDriver(tb testing.TB, client redis.Client) driver.Driver {
	tb.Helper()
	drv, err := rueidis.New(client)
	check.Must(tb, err)
	tb.Cleanup(func() { _ = drv.Close() })
	return drv
}

func dial(tb testing.TB, opts redis.ClientOption) driver.Driver {
	tb.Helper()
	return newDriver(tb, newClient(tb, opts))
}

// answered makes n calls, so the driver trusts the connections: it is careful at first.
func answered(tb testing.TB, drv driver.Driver, n int) {
	tb.Helper()
	for range n {
		if _, err := drv.SetNX(tb.Context(), "answered", "v", time.Minute); err != nil {
			tb.Fatal(err)
		}
	}
}

var (
	increment = driver.NewScript(`return redis.call("INCR", KEYS[1])`)
	compare   = driver.NewScript(`if redis.call("GET", KEYS[1]) == ARGV[1] then return redis.call("DEL", KEYS[1]) end return 0`)
)
