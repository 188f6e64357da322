package clients

import (
	"slices"
	"testing"

	"github.com/holdfast-go/holdfast/conformance"
	"github.com/holdfast-go/holdfast/conformance/drivertest"
	"github.com/holdfast-go/holdfast/internal/effort"
	"github.com/holdfast-go/holdfast/locker/driver"
)

// strategies, Kinds and WithFork are the dimensions of the conformance suite's product. The chain
// has a watchdog in it, and does not run over the same clients as the watchdog alone.
var (
	strategies = []string{"reentrant", "rwhash", "watchdog", "chain", "semaphore", "redisson"}
	Kinds      = []drivertest.Kind{drivertest.Memory, drivertest.Single, drivertest.Cluster, drivertest.Sentinel}
)

// Covered is a client with its kinds of servers to prove a strategy on.
type Covered struct {
	Client
	On []drivertest.Kind
}

// Cover returns the clients to prove a strategy over, each with its kinds of servers. By default
// the strategies, clients and kinds of servers are covered pairwise: each strategy runs on each
// kind over one client, and every pair of a strategy, a client or a kind occurs. If the environment
// says HOLDFAST_TEST=full, each strategy runs on each kind over each client.
func Cover(tb testing.TB, strategy string) []Covered {
	tb.Helper()
	i := slices.Index(strategies, strategy)
	if i < 0 {
		tb.Fatalf("clients: unknown strategy %q; known are %q", strategy, strategies)
	}
	if effort.Full() {
		return cover(i, len(WithFork))
	}
	return cover(i, 1)
}

// RunAll runs both suites over a client with other options, on every kind of server, if the environment
// says HOLDFAST_TEST=full.
func RunAll(t *testing.T, dial func(testing.TB, drivertest.Target) (driver.Driver, error)) {
	t.Helper()
	t.Parallel()
	effort.NeedFull(t)
	t.Run("driver", func(t *testing.T) {
		t.Parallel()
		drivertest.Run(t, drivertest.Harness{Dial: dial})
	})
	t.Run("locks", func(t *testing.T) {
		t.Parallel()
		conformance.Run(t, conformance.Harness{Dial: dial})
	})
}

// LocksOn returns the kinds of servers for a provider's run of the cases for locks: all if
// HOLDFAST_TEST=full, else fake time and one real kind. valkey-go runs them in fake time only: its
// adapter is generated.
func LocksOn(client string) []drivertest.Kind {
	switch kind, ok := realKind[client]; {
	case effort.Full():
		return nil
	case ok:
		return []drivertest.Kind{drivertest.Memory, kind}
	default:
		return []drivertest.Kind{drivertest.Memory}
	}
}

var realKind = map[string]drivertest.Kind{
	"goredis": drivertest.Sentinel, "rueidis": drivertest.Cluster, "redigo": drivertest.Single,
}

// cover returns the clients and kinds of a strategy in the first squares of the product. It has a
// square for each client: in square s strategy i runs on kind k over client i+k+s, modulo the
// number of clients.
func cover(strategy, squares int) []Covered {
	list := make([]Covered, len(WithFork))
	for c, client := range WithFork {
		list[c].Client = client
	}
	for k, kind := range Kinds {
		for s := range squares {
			c := (strategy + k + s) % len(WithFork)
			list[c].On = append(list[c].On, kind)
		}
	}
	return slices.DeleteFunc(list, func(c Covered) bool { return c.On == nil })
}
