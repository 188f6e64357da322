package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/conformance/drivertest"
	"github.com/holdfast-go/holdfast/internal/faultproxy"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// deployment is the servers of one topology, and the proxies in front of them.
type deployment struct {
	topology string
	servers  []*redistest.Server // with locks, and their replicas
	proxies  []*faultproxy.Proxy
	cluster  *redistest.Cluster  // nil: none
	sentinel *redistest.Sentinel // nil: none
	kind     drivertest.Kind
	master   string
	close    func() error
	// masters asks for the masters. It returns an error during a failover. nil: no replica can take
	// over.
	masters func(context.Context) ([]*redistest.Server, error)
}

// starters start a deployment of each topology.
var starters = map[string]func(context.Context) (*deployment, error){
	"one server":         oneServer,
	"five masters":       fiveMasters,
	"cluster":            threeNodes,
	"replicated cluster": threePairs,
	"sentinels":          threeSentinels,
}

// durable servers lose nothing acknowledged, except by a fault with loses set.
var durable = redistest.Options{Args: []string{"--appendonly", "yes", "--appendfsync", "always", "--hz", "50"}}

const (
	processes = 3
	clusterOf = 3
	mastersOf = 5
)

func oneServer(ctx context.Context) (*deployment, error) {
	s, err := redistest.Launch(ctx, durable)
	if err != nil {
		return nil, err
	}
	// A proxy for each process: their networks fail separately.
	st := &deployment{servers: []*redistest.Server{s}, kind: drivertest.Single}
	return st.behind([]string{s.Addr(), s.Addr(), s.Addr()}, s.Close)
}

func fiveMasters(ctx context.Context) (*deployment, error) {
	all, err := redistest.LaunchN(ctx, mastersOf, durable)
	if err != nil {
		return nil, err
	}
	st := &deployment{servers: all, kind: drivertest.Single}
	var addrs []string
	for _, s := range all {
		addrs = append(addrs, s.Addr())
	}
	return st.behind(addrs, func() error {
		var errs []error
		for _, s := range all {
			errs = append(errs, s.Close())
		}
		return errors.Join(errs...)
	})
}

// behind puts proxies in front of addrs.
func (s *deployment) behind(addrs []string, end func() error) (*deployment, error) {
	s.close = func() error {
		for _, p := range s.proxies {
			p.Close()
		}
		return end()
	}
	for _, addr := range addrs {
		p, err := faultproxy.Listen(addr)
		if err != nil {
			return nil, errors.Join(err, s.close())
		}
		s.proxies = append(s.proxies, p)
	}
	return s, nil
}

func threeNodes(ctx context.Context) (*deployment, error) {
	st := &deployment{kind: drivertest.Cluster}
	var mu sync.Mutex
	opts := durable
	opts.Announce = func(addr string) (int, error) {
		p, err := faultproxy.Listen(addr)
		if err != nil {
			return 0, err
		}
		mu.Lock()
		defer mu.Unlock()
		st.proxies = append(st.proxies, p)
		return p.Port(), nil
	}
	c, err := redistest.LaunchCluster(ctx, clusterOf, opts)
	st.close = func() error {
		for _, p := range st.proxies {
			p.Close()
		}
		return c.Close()
	}
	if err != nil {
		c = &redistest.Cluster{}
		return nil, errors.Join(err, st.close())
	}
	st.cluster, st.servers = c, c.Nodes()
	return st, nil
}

// threePairs starts a cluster with one replica for each master. It has no proxies, because replicas
// and clients find a master by the same announced address.
func threePairs(ctx context.Context) (*deployment, error) {
	opts := durable
	opts.Args = append(slices.Clone(opts.Args), "--cluster-node-timeout", strconv.FormatInt(downAfter.Milliseconds(), 10))
	c, err := redistest.LaunchCluster(ctx, clusterOf, opts)
	if err != nil {
		return nil, err
	}
	st := &deployment{servers: c.Nodes(), cluster: c, kind: drivertest.Cluster, close: c.Close, masters: c.Masters}
	for _, master := range c.Nodes() {
		replica, err := c.AddReplica(ctx, master)
		if err != nil {
			return nil, errors.Join(err, c.Close())
		}
		st.servers = append(st.servers, replica)
	}
	return st, nil
}

// threeSentinels has no proxies, because Sentinels announce the servers' own addresses.
func threeSentinels(ctx context.Context) (*deployment, error) {
	s, err := redistest.LaunchSentinel(ctx, durable)
	if err != nil {
		return nil, err
	}
	st := &deployment{servers: s.Servers(), sentinel: s, kind: drivertest.Sentinel, master: s.MasterName(), close: s.Close}
	st.masters = st.soleMaster
	return st, nil
}

// targets returns the addresses for the clients of process i to dial.
func (s *deployment) targets(i int) [][]string {
	switch {
	case s.cluster != nil:
		return [][]string{s.cluster.Addrs()}
	case s.sentinel != nil:
		return [][]string{s.sentinel.SentinelAddrs()}
	case len(s.servers) == 1:
		return [][]string{{s.proxies[i%len(s.proxies)].Addr()}}
	}
	var all [][]string
	for _, p := range s.proxies {
		all = append(all, []string{p.Addr()})
	}
	return all
}

// latency adds latency to the round trips to all servers.
func (s *deployment) latency(d time.Duration) {
	for _, p := range s.proxies {
		p.Latency(d)
	}
}

// log returns the logs of the servers.
func (s *deployment) log() string {
	var b strings.Builder
	all := s.servers
	if s.sentinel != nil {
		all = append(s.sentinel.Sentinels(), all...)
	}
	for _, srv := range all {
		fmt.Fprintf(&b, "--- %s\n%s", srv.Addr(), srv.Log())
	}
	return b.String()
}

// keepers returns the servers with the locks now.
func (s *deployment) keepers(ctx context.Context) ([]*redistest.Server, error) {
	switch {
	case s.masters == nil:
		return s.servers, nil
	case s.cluster != nil:
		return s.settle(ctx)
	}
	m, err := s.sentinel.Master(ctx)
	if err != nil {
		return nil, err
	}
	return []*redistest.Server{m}, nil
}

// fenceSuffix ends the keys of fencing counters.
const fenceSuffix = ":fence"

// censusLimit is how long after the last client keys may take to expire.
const censusLimit = 20 * time.Second

// census waits until only fencing counters with a TTL are left. It returns other remaining keys as
// a complaint. Then it empties the servers.
func (s *deployment) census(ctx context.Context) (complaint string, err error) {
	if s.masters != nil {
		if _, err := s.settle(ctx); err != nil {
			return "", err
		}
	}
	servers, err := s.keepers(ctx)
	if err != nil {
		return "", err
	}
	end := time.Now().Add(censusLimit)
	for {
		var left []string
		for _, srv := range servers {
			keys, err := leftAt(srv)
			if err != nil {
				return "", err
			}
			left = append(left, keys...)
		}
		if len(left) == 0 {
			break
		}
		if time.Now().After(end) {
			complaint = fmt.Sprintf("%d keys are left on %s after %v: %s", len(left), s.topology, censusLimit, strings.Join(left, ", "))
			break
		}
		if !pause(ctx, 50*time.Millisecond) {
			return "", ctx.Err()
		}
	}
	for _, srv := range servers {
		if _, err := srv.Command("FLUSHALL"); err != nil {
			return complaint, err
		}
	}
	return complaint, nil
}

// leftAt lists the unexpected keys of a server.
func leftAt(s *redistest.Server) ([]string, error) {
	reply, err := s.Command("KEYS", "*")
	if err != nil {
		return nil, err
	}
	list, _ := reply.([]any)
	var left []string
	for _, k := range list {
		key := fmt.Sprint(k)
		ttl, err := s.Command("PTTL", key)
		if err != nil {
			return nil, err
		}
		ms, _ := ttl.(int64)
		if ms == -2 || strings.HasSuffix(key, fenceSuffix) && ms > 0 {
			continue
		}
		left = append(left, fmt.Sprintf("%s (%d ms)", key, ms))
	}
	return left, nil
}
