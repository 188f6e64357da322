package rueidis_test

import (
	"context"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	redis "github.com/redis/rueidis"
	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast/internal/faultproxy"
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
	sentinel = redistest.Share(func(ctx context.Context) (*redistest.Sentinel, error) {
		return redistest.LaunchSentinel(ctx, redistest.Options{})
	})
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(redistest.CloseAfter(m, server, cluster, sentinel),
		// A cluster client waits there, closed or not: five seconds until it closes connections to
		// nodes it needs no more, and up to a second before it asks for the slots.
		goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*clusterClient)._refresh.func2"),
		goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*call).DelayDo.func1"))
}

// patience is how long a test waits for what must happen before it fails.
const patience = 20 * time.Second

const forever = time.Hour

// single are the options of a client that needs no more than miniredis has.
func single(addr string) redis.ClientOption {
	return redis.ClientOption{InitAddress: []string{addr}, DisableCache: true, ForceSingleClient: true, AlwaysRESP2: true}
}

// mini returns a proxy before a miniredis.
func mini(t *testing.T) *faultproxy.Proxy {
	m := miniredis.RunT(t)
	return faultproxy.Start(t, m.Addr())
}

func newClient(tb testing.TB, opts redis.ClientOption) redis.Client {
	tb.Helper()
	client, err := redis.NewClient(opts)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(client.Close)
	return client
}

func newDriver(tb testing.TB, client redis.Client) driver.Driver {
	tb.Helper()
	drv, err := rueidis.New(client)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = drv.Close() })
	return drv
}

func dial(tb testing.TB, opts redis.ClientOption) driver.Driver {
	tb.Helper()
	return newDriver(tb, newClient(tb, opts))
}

// within fails the test unless f returns.
func within(tb testing.TB, what string, f func()) {
	tb.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	wait(tb, what, done)
}

// wait fails the test unless event comes.
func wait(tb testing.TB, what string, event <-chan struct{}) {
	tb.Helper()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-event:
	case <-timer.C:
		tb.Fatalf("%s: has not happened after %v", what, patience)
	}
}

// eventually fails the test unless cond holds at last.
func eventually(tb testing.TB, what string, cond func() bool) {
	tb.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(patience); !cond(); <-tick.C {
		if time.Now().After(end) {
			tb.Fatalf("%s: not so after %v", what, patience)
		}
	}
}

var (
	increment = driver.NewScript(`return redis.call("INCR", KEYS[1])`)
	compare   = driver.NewScript(`if redis.call("GET", KEYS[1]) == ARGV[1] then return redis.call("DEL", KEYS[1]) end return 0`)
)
