package redlock_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9/logging"

	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/strategies/redlock"
	"github.com/holdfast-go/holdfast/strategies/single"
)

const (
	five = 5
	// soon is far beyond what anything takes that waits for no node which is down.
	soon = 5 * time.Second
	// long is a lease, and a timeout, that no test outlives: what is over sooner was not ended by
	// it.
	long = 5 * time.Minute
)

// lenient is for nodes that a busy machine keeps for longer than the default allows for, where
// those that answer are all needed.
var lenient = redlock.Config{AttemptTimeout: 1500 * time.Millisecond}

func init() { logging.Disable() } // go-redis writes a line for every dial that fails

// masters are five servers that share nothing and keep what they acknowledged.
type masters struct {
	*testing.T
	servers []*redistest.Server
}

func startMasters(t *testing.T) *masters {
	t.Helper()
	return &masters{t, redistest.StartN(t, five, redistest.Options{Args: []string{"--appendonly", "yes", "--appendfsync", "always"}})}
}

// quorum makes a Locker over the five with clients of its own, which differ from node to node,
// beginning with the mix-th. strategy makes the nodes; nil: single.
func (m *masters) quorum(mix int, cfg redlock.Config, strategy func(driver.Driver) locker.Locker) *redlock.Locker {
	m.Helper()
	if strategy == nil {
		strategy = func(drv driver.Driver) locker.Locker { return locker.Must(single.New(drv, single.Config{})) }
	}
	var nodes []locker.Locker
	for i, s := range m.servers {
		nodes = append(nodes, strategy(clients.All[(mix+i)%len(clients.All)].Open(m, s.Addr())))
	}
	return locker.Must(redlock.New(nodes, cfg))
}

func (m *masters) must(err error) {
	m.Helper()
	if err != nil {
		m.Fatal(err)
	}
}

func (m *masters) kill(nodes ...int) {
	m.Helper()
	for _, i := range nodes {
		m.must(m.servers[i].Kill())
	}
}

func (m *masters) restart(nodes ...int) {
	m.Helper()
	for _, i := range nodes {
		m.must(m.servers[i].Restart(m.Context()))
	}
}

// freeze freezes nodes until thaw, or the end of the test: before its clients are closed.
func (m *masters) freeze(nodes ...int) {
	m.Helper()
	for _, i := range nodes {
		m.must(m.servers[i].Freeze())
		m.Cleanup(func() { _ = m.servers[i].Thaw() })
	}
}

func (m *masters) thaw(nodes ...int) {
	m.Helper()
	for _, i := range nodes {
		m.must(m.servers[i].Thaw())
	}
}

// value is what a key has at one node; nil: it is not there.
func (m *masters) value(node int, key string) any {
	m.Helper()
	return m.servers[node].MustCommand(m, "GET", key)
}

// left is how long a key lives at one node.
func (m *masters) left(node int, key string) time.Duration {
	m.Helper()
	n, ok := m.servers[node].MustCommand(m, "PTTL", key).(int64)
	if !ok {
		m.Fatal("PTTL replies no number")
	}
	return time.Duration(n) * time.Millisecond
}
