package redistest

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Cluster is a Redis Cluster of masters, without replicas unless AddReplica adds some.
type Cluster struct {
	mu       sync.Mutex
	nodes    []*Server // the masters
	replicas []*Server
	ids      map[*Server]string
	owner    [Slots]*Server
}

// StartCluster starts a cluster of n masters for a test. -short skips the test.
func StartCluster(tb TB, n int, opts Options) *Cluster {
	tb.Helper()
	needMany(tb)
	return start(tb, func(ctx context.Context) (*Cluster, error) { return LaunchCluster(ctx, n, opts) })
}

// LaunchCluster starts a cluster of n masters with equal shares of the slots. The
// caller must Close it. When it returns, every node serves its slots, knows the
// owner of each other slot and passes messages on to each other node.
func LaunchCluster(ctx context.Context, n int, opts Options) (_ *Cluster, err error) {
	if n < 1 {
		return nil, fmt.Errorf("redistest: a cluster of %d nodes: want 1 or more", n)
	}
	c := &Cluster{ids: map[*Server]string{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Close())
		}
	}()
	c.nodes, err = launchMany(n, func() (*Server, error) { return launch(ctx, opts, opts.clusterNode) })
	if err != nil {
		return nil, err
	}
	for i, s := range c.nodes {
		first, last := i*Slots/n, (i+1)*Slots/n-1
		for slot := first; slot <= last; slot++ {
			c.owner[slot] = s
		}
		if err := c.join(ctx, i, first, last); err != nil {
			return nil, err
		}
	}
	return c, c.WaitReady(ctx)
}

// busPortIsFixed reports whether the server has no setting for the port of the
// cluster's bus: Redis before 7.0.
var busPortIsFixed = sync.OnceValue(func() bool {
	path, err := program()
	if err != nil {
		return false
	}
	version, err := exec.Command(path, "--version").Output()
	return err == nil && strings.HasPrefix(string(version), "Redis server v=6.")
})

// clusterNode returns the settings of a cluster node.
func (o Options) clusterNode(s *Server) ([]string, error) {
	args, err := o.common(s)
	if err != nil {
		return nil, err
	}
	args = append(args, "--cluster-enabled", "yes")
	if busPortIsFixed() {
		s.busPort = s.port + 10_000
	} else {
		args = append(args, "--cluster-port", strconv.Itoa(s.busPort))
	}
	if o.TLS != NoTLS {
		args = append(args, "--tls-cluster", "yes")
	}
	if o.Announce == nil {
		return args, nil
	}
	if s.announced, err = o.Announce(s.Addr()); err != nil {
		return nil, fmt.Errorf("redistest: Options.Announce: %w", err)
	}
	setting := "--cluster-announce-port"
	if o.TLS != NoTLS {
		setting = "--cluster-announce-tls-port"
	}
	return append(args, setting, strconv.Itoa(s.announced), "--cluster-announce-bus-port", strconv.Itoa(s.busPort)), nil
}

// join makes node i serve its slots and meet the nodes before it.
func (c *Cluster) join(ctx context.Context, i, first, last int) error {
	s := c.nodes[i]
	if err := c.name(ctx, s); err != nil {
		return err
	}
	commands := [][]any{
		{"CLUSTER", "SET-CONFIG-EPOCH", i + 1},
		addSlots(first, last),
	}
	for _, other := range c.nodes[:i] {
		commands = append(commands, []any{"CLUSTER", "MEET", "127.0.0.1", other.port, other.busPort})
	}
	for _, command := range commands {
		if _, err := s.Do(ctx, command...); err != nil {
			return fmt.Errorf("redistest: %s: %w", fmt.Sprint(command[:2]...), err)
		}
	}
	return nil
}

// name keeps the node ID of s.
func (c *Cluster) name(ctx context.Context, s *Server) error {
	id, err := s.Do(ctx, "CLUSTER", "MYID")
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ids[s] = fmt.Sprint(id)
	return nil
}

// addSlots returns CLUSTER ADDSLOTS, because ADDSLOTSRANGE is only known to Redis 7.
func addSlots(first, last int) []any {
	command := []any{"CLUSTER", "ADDSLOTS"}
	for slot := first; slot <= last; slot++ {
		command = append(command, slot)
	}
	return command
}

// WaitReady waits until every running node serves its slots, knows the owner of each other slot and
// has a link to each other running node, as after a node's Restart. Messages published earlier do
// not reach all nodes.
func (c *Cluster) WaitReady(ctx context.Context) error {
	all := c.all()
	for _, s := range all {
		if !s.Running() {
			continue
		}
		err := poll(ctx, "the cluster is ready at "+s.Addr(), func(ctx context.Context) error {
			info, err := s.Do(ctx, "CLUSTER", "INFO")
			if err != nil {
				return err
			}
			text, _ := info.(string)
			if state, known := infoField(text, "cluster_state"), infoField(text, "cluster_known_nodes"); state != "ok" || known != strconv.Itoa(len(all)) {
				return fmt.Errorf("cluster_state is %s, known nodes %s of %d", state, known, len(all))
			}
			return c.compare(ctx, s)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// compare checks the owners of all slots as s sees them, and its links.
func (c *Cluster) compare(ctx context.Context, s *Server) error {
	nodes, err := s.Do(ctx, "CLUSTER", "NODES")
	if err != nil {
		return err
	}
	seen := owners(nodes)
	for slot := range Slots {
		if want := c.id(c.NodeForSlot(slot)); seen[slot] != want {
			return fmt.Errorf("owner of slot %d is %q, want %q", slot, seen[slot], want)
		}
	}
	linked := links(nodes)
	for _, other := range c.all() {
		if id := c.id(other); other.Running() && !linked[id] {
			return fmt.Errorf("there is no link to %s, node %q", other.Addr(), id)
		}
	}
	return nil
}

// links returns the IDs of the linked nodes in a reply to CLUSTER NODES.
func links(reply any) map[string]bool {
	text, _ := reply.(string)
	linked := map[string]bool{}
	for line := range strings.Lines(text) {
		if fields := strings.Fields(line); len(fields) > 7 && fields[7] == "connected" {
			linked[fields[0]] = true
		}
	}
	return linked
}

// owners returns the IDs of the slots' owners in a reply to CLUSTER NODES.
func owners(reply any) (seen [Slots]string) {
	text, _ := reply.(string)
	for line := range strings.Lines(text) {
		// id addr flags master ping pong epoch link range...; a [range] is on the move
		fields := strings.Fields(line)
		for _, r := range fields[min(8, len(fields)):] {
			first, last, isRange := strings.Cut(r, "-")
			if !isRange {
				last = first
			}
			from, err1 := strconv.Atoi(first)
			to, err2 := strconv.Atoi(last)
			if err1 != nil || err2 != nil || from < 0 || to >= Slots {
				continue
			}
			for slot := from; slot <= to; slot++ {
				seen[slot] = fields[0]
			}
		}
	}
	return seen
}

// id returns the node ID of s.
func (c *Cluster) id(s *Server) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ids[s]
}

// Nodes returns the masters, in the order of their first slots; after a failover, those of the last
// WaitMasters.
func (c *Cluster) Nodes() []*Server {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.nodes)
}

// all returns the masters and the replicas.
func (c *Cluster) all() []*Server {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Concat(c.nodes, c.replicas)
}

// Addrs returns the addresses for clients to dial: of the nodes, or the announced ones.
func (c *Cluster) Addrs() []string {
	nodes := c.Nodes()
	addrs := make([]string, len(nodes))
	for i, s := range nodes {
		addrs[i] = localAddr(s.announced)
	}
	return addrs
}

// NodeForSlot returns the owner of a slot: while it is on the move, the source.
func (c *Cluster) NodeForSlot(slot int) *Server {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.owner[slot]
}

// NodeForKey returns the owner of a key's slot.
func (c *Cluster) NodeForKey(key string) *Server { return c.NodeForSlot(Slot(key)) }

// Close kills the nodes and removes their folders.
func (c *Cluster) Close() error { return closeAll(c.all()) }

// Log returns the logs of all nodes.
func (c *Cluster) Log() string { return logAll(c.all()) }
