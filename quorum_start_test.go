//nolint:forbidigo // fake time
package holdfast_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"testing"
	"testing/synctest"
	"time"

	rueidisclient "github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/internal/faultproxy"
	"github.com/holdfast-go/holdfast/internal/memnet"
	"github.com/holdfast-go/holdfast/internal/memredis"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/providers/rueidis"
	"github.com/holdfast-go/holdfast/strategies/redlock"
	"github.com/holdfast-go/holdfast/strategies/single"
)

// rueidis.NewClient connects at once. With ForceSingleClient it returns the client along with the
// error, and the client connects when it is used. So a program starts while a minority of the
// servers of its quorum is down.
func Example_quorumWithAServerDown() {
	connect := func(addr string) (rueidisclient.Client, error) {
		client, err := rueidisclient.NewClient(rueidisclient.ClientOption{
			InitAddress: []string{addr}, ForceSingleClient: true,
		})
		if client == nil {
			return nil, err // the options are wrong
		}
		if err != nil {
			fmt.Println("going on without a server") // log the error here
		}
		return client, nil
	}
	client, err := connect("127.0.0.1:1") // nobody listens there
	if err != nil {
		panic(err)
	}
	defer client.Close()
	drv := locker.Must(rueidis.New(client))
	defer drv.Close()
	fmt.Println("node:", drv.Info().Address)
	// Output:
	// going on without a server
	// node: 127.0.0.1:1
}

// A quorum over rueidis starts while one server is down, and has the lock there too once the server
// is back.
func TestQuorumStartsWithAServerDown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, quorumStartsWithAServerDown)
}

func quorumStartsWithAServerDown(t *testing.T) {
	t.Cleanup(func() { time.Sleep(time.Minute) }) // what closed clients leave behind ends
	network := memnet.New()
	network.Latency = 50 * time.Microsecond
	var nodes []locker.Locker
	var down *faultproxy.Proxy
	var server *memredis.Server
	for i := range 3 {
		server = memredis.Start(t, network)
		proxy := faultproxy.StartOn(t, network, server.Addr())
		if i == 2 {
			down = proxy
			down.Refuse()
		}
		client, err := rueidisclient.NewClient(rueidisclient.ClientOption{
			InitAddress: []string{proxy.Addr()}, ForceSingleClient: true, AlwaysRESP2: true, DisableCache: true,
			DialCtxFn: func(ctx context.Context, addr string, _ *net.Dialer, _ *tls.Config) (net.Conn, error) {
				return network.Dial(ctx, "tcp", addr)
			},
		})
		if client == nil || (err != nil) != (i == 2) {
			t.Fatalf("NewClient for server %d: %v, %v", i, client, err)
		}
		t.Cleanup(client.Close)
		drv := locker.Must(rueidis.New(client))
		t.Cleanup(func() { _ = drv.Close() })
		nodes = append(nodes, locker.Must(single.New(drv, single.Config{})))
	}
	l := locker.Must(redlock.New(nodes, redlock.Config{}))
	const name, other = "invoice:42", "invoice:43"
	lock, err := l.Acquire(t.Context(), locker.Request{Name: name, TTL: time.Minute})
	if err != nil {
		t.Fatalf("Acquire with a server down: %v", err)
	}
	if err := down.Accept(); err != nil {
		t.Fatal(err)
	}
	eventually := func(what string, cond func() bool) {
		t.Helper()
		for end := time.Now().Add(20 * time.Second); !cond(); time.Sleep(10 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("still not: %s", what)
			}
		}
	}
	eventually("a renewal brings the lock to the server that is back", func() bool {
		if err := lock.Renew(t.Context(), time.Minute); err != nil {
			t.Fatalf("Renew: %v", err)
		}
		return server.Exists(name)
	})
	second, err := l.Acquire(t.Context(), locker.Request{Name: other, TTL: time.Minute})
	if err != nil {
		t.Fatalf("Acquire with the server back: %v", err)
	}
	eventually("an acquire takes in the server that is back", func() bool { return server.Exists(other) })
	for _, lock := range []*locker.Lock{lock, second} {
		if err := lock.Release(context.Background()); err != nil {
			t.Errorf("Release: %v", err)
		}
	}
	eventually("the releases reach it too", func() bool { return !server.Exists(name) && !server.Exists(other) })
}
