package suite

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/holdfast-go/holdfast/internal/faultproxy"
	"github.com/holdfast-go/holdfast/internal/localport"
	"github.com/holdfast-go/holdfast/internal/memnet"
	"github.com/holdfast-go/holdfast/internal/memredis"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/internal/resp"
)

// ClusterSize is the number of masters of a cluster.
const ClusterSize = 3

// Server is a server under test, with a way to it around the driver. One of Mini, Real, Cluster,
// Nodes and Double is set, unless it is Given.
type Server struct {
	Target   Target
	Mini     *miniredis.Miniredis
	Net      *memnet.Net // of Mini; nil: TCP
	events   func(most int) []string
	Real     *redistest.Server // with Sentinels: the first master
	Cluster  *redistest.Cluster
	Sentinel *redistest.Sentinel

	Nodes  []*Server // independent servers
	Killed bool      // one of Nodes, for good
	kill   func() error

	// Given is true if others use the server too. The cases write keys of their own, and ask for
	// nothing else.
	Given bool

	// Double answers commands in place of a server.
	Double func(args ...any) (any, error)
}

// startShared starts the shared servers of a kind, by Case.Nodes; a simulated one belongs to one
// case.
func startShared(tb testing.TB, kind Kind, todo []*Case) map[int]*Server {
	tb.Helper()
	if kind.simulated() {
		return nil
	}
	shared := map[int]*Server{0: start(quiet{tb}, kind, 0)}
	for _, c := range todo {
		if shared[c.Nodes] == nil && !c.Own {
			shared[c.Nodes] = start(quiet{tb}, kind, c.Nodes)
		}
	}
	return shared
}

// quiet hides the failure of one of many cases: a server's log is not shown.
type quiet struct{ testing.TB }

func (quiet) Failed() bool { return false }

// start starts one server of a kind, or independent nodes.
func start(tb testing.TB, kind Kind, nodes int) *Server {
	tb.Helper()
	switch {
	case nodes > 0:
		return startNodes(tb, kind, nodes)
	case kind == Memory:
		return startMemory(tb, newNet())
	case kind == Miniredis:
		return startMini(tb)
	case kind == Single:
		return StartReal(tb, redistest.Options{})
	case kind == Cluster:
		c := redistest.StartCluster(tb, ClusterSize, redistest.Options{})
		return &Server{Cluster: c, Target: Target{Kind: kind, Addrs: c.Addrs()}}
	default:
		s := redistest.StartSentinel(tb, redistest.Options{})
		return &Server{Real: s.Servers()[0], Sentinel: s, Target: Target{
			Kind: kind, Addrs: s.SentinelAddrs(), MasterName: s.MasterName(),
		}}
	}
}

// startNodes starts independent servers. The real ones keep their keys over a restart, as a quorum
// assumes.
func startNodes(tb testing.TB, kind Kind, n int) *Server {
	tb.Helper()
	all := &Server{Target: Target{Kind: kind, Miniredis: kind.simulated()}}
	switch kind {
	case Memory:
		network := newNet()
		all.Target.Dial = network.Dial
		for range n {
			all.Nodes = append(all.Nodes, startMemory(tb, network))
		}
		return all
	case Miniredis:
		for range n {
			all.Nodes = append(all.Nodes, startMini(tb))
		}
		return all
	}
	durable := redistest.Options{Args: []string{"--appendonly", "yes", "--appendfsync", "always"}}
	for _, s := range redistest.StartN(tb, n, durable) {
		all.Nodes = append(all.Nodes, &Server{
			Real: s, kill: s.Kill, Target: Target{Kind: kind, Addrs: []string{s.Addr()}},
		})
	}
	return all
}

// newNet makes a network in memory. A segment takes a while, as on every network: cases count on it.
func newNet() *memnet.Net {
	network := memnet.New()
	network.Latency = 50 * time.Microsecond
	return network
}

// startMemory starts a miniredis in memory.
func startMemory(tb testing.TB, network *memnet.Net) *Server {
	tb.Helper()
	m := memredis.Start(tb, network)
	return &Server{
		Mini: m.Miniredis, Net: network, events: m.Events, kill: func() error { m.Close(); return nil },
		Target: Target{Kind: Memory, Addrs: []string{m.Addr()}, Miniredis: true, Dial: network.Dial},
	}
}

// startMini starts a miniredis on a port outside the range of clients' ports.
func startMini(tb testing.TB) *Server {
	tb.Helper()
	var err error
	for range 10 {
		var ports []int
		if ports, err = localport.Free(1); err != nil {
			break
		}
		m := miniredis.NewMiniRedis()
		m.ClockTTL(true)
		if err = m.StartAddr(net.JoinHostPort("127.0.0.1", strconv.Itoa(ports[0]))); err == nil {
			tb.Cleanup(m.Close)
			return &Server{
				Mini: m, kill: func() error { return endMini(tb, m) },
				Target: Target{Kind: Miniredis, Addrs: []string{m.Addr()}, Miniredis: true},
			}
		}
	}
	tb.Fatalf("miniredis: %v", err)
	return nil
}

// endMini closes a miniredis and occupies its port for the rest of the case.
func endMini(tb testing.TB, m *miniredis.Miniredis) error {
	port, err := strconv.Atoi(m.Port())
	m.Close()
	if err != nil {
		return err
	}
	held, err := localport.Hold(port)
	if err == nil {
		tb.Cleanup(func() { _ = held.Drop() })
	}
	return err
}

// Kill ends one of several nodes for good.
func (s *Server) Kill() error {
	s.Killed = true
	return s.kill()
}

// Proxy puts a proxy in front of the server.
func (s *Server) Proxy(tb testing.TB) *faultproxy.Proxy {
	tb.Helper()
	if s.Net == nil {
		return faultproxy.Start(tb, s.Target.Addrs[0])
	}
	return faultproxy.StartOn(tb, s.Net, s.Target.Addrs[0])
}

// StartReal starts one real server.
func StartReal(tb testing.TB, opts redistest.Options) *Server {
	tb.Helper()
	s := redistest.Start(tb, opts)
	return &Server{Real: s, Target: Target{
		Kind: Single, Addrs: []string{s.Addr()}, Password: s.Password(), TLS: s.TLSConfig(true),
	}}
}

// Do sends a command to key's node, around the driver.
func (s *Server) Do(ctx context.Context, key string, args ...any) (any, error) {
	switch {
	case s.Double != nil:
		return s.Double(args...)
	case s.Mini != nil, s.Given: // a closed miniredis forgets its address
		return doAt(ctx, s.Target, args...)
	case s.Cluster != nil:
		return s.Cluster.NodeForKey(key).Do(ctx, args...)
	default:
		return s.Real.Do(ctx, args...)
	}
}

// DoAt sends a command over a connection of its own, without TLS and a login.
func DoAt(ctx context.Context, addr string, args ...any) (any, error) {
	return doAt(ctx, Target{Addrs: []string{addr}}, args...)
}

func doAt(ctx context.Context, target Target, args ...any) (_ any, err error) {
	c, err := Connect(ctx, target)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	return c.Do(args...)
}

// Connect opens a connection to the first server of target, and logs in there. It ends at the
// deadline of ctx.
func Connect(ctx context.Context, target Target) (*resp.Conn, error) {
	dial := target.Dial
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	tcp, err := dial(ctx, "tcp", target.Addrs[0])
	if err != nil {
		return nil, err
	}
	if target.TLS != nil {
		cfg := target.TLS.Clone()
		if cfg.ServerName == "" {
			cfg.ServerName, _, _ = net.SplitHostPort(target.Addrs[0])
		}
		tcp = tls.Client(tcp, cfg)
	}
	c := resp.NewConn(tcp)
	if deadline, ok := ctx.Deadline(); ok {
		if err := c.SetDeadline(deadline); err != nil {
			return nil, errors.Join(err, c.Close())
		}
	}
	if target.Password != "" {
		login := []any{"AUTH", target.Password}
		if target.Username != "" {
			login = []any{"AUTH", target.Username, target.Password}
		}
		if _, err := c.Do(login...); err != nil {
			return nil, errors.Join(err, c.Close())
		}
	}
	return c, nil
}

// EveryNode sends a command to each node.
func (s *Server) EveryNode(ctx context.Context, args ...any) error {
	if s.Cluster == nil {
		_, err := s.Do(ctx, "", args...)
		return err
	}
	for _, n := range s.Cluster.Nodes() {
		if _, err := n.Do(ctx, args...); err != nil {
			return fmt.Errorf("%s: %w", n.Addr(), err)
		}
	}
	return nil
}
