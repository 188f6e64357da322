package conformance

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"

	"github.com/alicebob/miniredis/v2"

	"github.com/holdfast-go/holdfast/internal/localport"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/internal/resp"
)

const clusterSize = 3

// server is a server under test, with a way to it around the driver.
type server struct {
	target   Target
	mini     *miniredis.Miniredis
	real     *redistest.Server // of Single; of Sentinel the first master
	cluster  *redistest.Cluster
	sentinel *redistest.Sentinel

	nodes  []*server // of a quorum
	killed bool      // a node of a quorum, for good
}

// pool has the servers of a kind that cases share.
type pool struct{ one, quorum *server }

// startShared starts what cases of a kind share; on Miniredis each has its own.
func startShared(tb TB, kind Kind, todo []*testCase) (p pool) {
	tb.Helper()
	if kind == Miniredis {
		return p
	}
	p.one = startServer(quiet{tb}, kind)
	if slices.ContainsFunc(todo, func(c *testCase) bool { return c.quorum && !c.own }) {
		p.quorum = startQuorum(quiet{tb}, kind)
	}
	return p
}

// start starts what the case needs for itself.
func (c *testCase) start(tb TB, kind Kind) *server {
	tb.Helper()
	if c.quorum {
		return startQuorum(tb, kind)
	}
	return startServer(tb, kind)
}

// quiet is a test that does not show a server's log when one of many cases has failed.
type quiet struct{ TB }

func (quiet) Failed() bool { return false }

// startServer starts a server for one test.
func startServer(tb TB, kind Kind) *server {
	tb.Helper()
	switch kind {
	case Miniredis:
		m := startMini(tb)
		return &server{mini: m, target: Target{Kind: kind, Addrs: []string{m.Addr()}, Miniredis: true}}
	case Single:
		return startReal(tb, redistest.Options{})
	case Cluster:
		c := redistest.StartCluster(tb, clusterSize, redistest.Options{})
		return &server{cluster: c, target: Target{Kind: kind, Addrs: c.Addrs()}}
	default:
		s := redistest.StartSentinel(tb, redistest.Options{})
		return &server{real: s.Servers()[0], sentinel: s, target: Target{
			Kind: kind, Addrs: s.SentinelAddrs(), MasterName: s.MasterName(),
		}}
	}
}

// startMini starts a miniredis on a port that is not of the range in which clients get theirs.
func startMini(tb TB) *miniredis.Miniredis {
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
			return m
		}
	}
	tb.Fatalf("miniredis: %v", err)
	return nil
}

// startReal starts one real server.
func startReal(tb TB, opts redistest.Options) *server {
	tb.Helper()
	s := redistest.Start(tb, opts)
	return &server{real: s, target: Target{
		Kind: Single, Addrs: []string{s.Addr()}, Password: s.Password(), TLS: s.TLSConfig(true),
	}}
}

// do sends a command to the node that has key, around the driver.
func (s *server) do(ctx context.Context, key string, args ...any) (any, error) {
	switch {
	case s.mini != nil:
		return doAt(ctx, s.target.Addrs[0], args...) // it forgets its address when it is closed
	case s.cluster != nil:
		return s.cluster.NodeForKey(key).Do(ctx, args...)
	default:
		return s.real.Do(ctx, args...)
	}
}

// doAt sends a command over a connection of its own.
func doAt(ctx context.Context, addr string, args ...any) (_ any, err error) {
	var d net.Dialer
	tcp, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	c := resp.NewConn(tcp)
	defer func() { err = errors.Join(err, c.Close()) }()
	if deadline, ok := ctx.Deadline(); ok {
		if err := c.SetDeadline(deadline); err != nil {
			return nil, err
		}
	}
	return c.Do(args...)
}

// everyNode sends a command to each node.
func (s *server) everyNode(ctx context.Context, args ...any) error {
	if s.cluster == nil {
		_, err := s.do(ctx, "", args...)
		return err
	}
	for _, n := range s.cluster.Nodes() {
		if _, err := n.Do(ctx, args...); err != nil {
			return fmt.Errorf("%s: %w", n.Addr(), err)
		}
	}
	return nil
}
