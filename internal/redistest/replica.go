package redistest

import (
	"context"
	"fmt"
	"net"
	"strconv"
)

// quickSync makes a master begin to copy its data to a replica at once.
const quickSync = "repl-diskless-sync-delay"

// StartReplica starts a replica of master for a test. The replica dials addr: the master's own, or
// a Relay's. It is in sync when StartReplica returns.
func StartReplica(tb TB, master *Server, addr string) *Server {
	tb.Helper()
	return start(tb, func(ctx context.Context) (*Server, error) { return LaunchReplica(ctx, master, addr) })
}

// LaunchReplica is StartReplica outside of a test. The caller must Close the replica.
func LaunchReplica(ctx context.Context, master *Server, addr string) (*Server, error) {
	if _, err := master.Do(ctx, "CONFIG", "SET", quickSync, 0); err != nil {
		return nil, err
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	r, err := launch(ctx, master.opts, func(r *Server) ([]string, error) {
		args, err := master.opts.common(r)
		return append(args, "--replicaof", host, port), err
	})
	if err != nil {
		return nil, err
	}
	return r, r.inSync(ctx)
}

// inSync waits until the replica has a copy of its master's data.
func (s *Server) inSync(ctx context.Context) error {
	return poll(ctx, "replica "+s.Addr()+" is in sync", func(ctx context.Context) error {
		info, err := s.Do(ctx, "INFO", "replication")
		if err != nil {
			return err
		}
		text, _ := info.(string)
		if link := infoField(text, "master_link_status"); link != "up" {
			return fmt.Errorf("master_link_status is %q", link)
		}
		return nil
	})
}

// AddReplica starts a replica of one of the masters. It is in sync when AddReplica returns, and
// every node knows it.
func (c *Cluster) AddReplica(ctx context.Context, master *Server) (*Server, error) {
	if _, err := master.Do(ctx, "CONFIG", "SET", quickSync, 0); err != nil {
		return nil, err
	}
	r, err := launch(ctx, master.opts, master.opts.clusterNode)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	c.replicas = append(c.replicas, r)
	c.mu.Unlock()
	if err := c.name(ctx, r); err != nil {
		return r, err
	}
	if _, err := r.Do(ctx, "CONFIG", "SET", quickSync, 0); err != nil { // it may become the next master
		return r, err
	}
	if _, err := r.Do(ctx, "CLUSTER", "MEET", "127.0.0.1", strconv.Itoa(master.port),
		strconv.Itoa(master.busPort)); err != nil {
		return r, err
	}
	err = poll(ctx, "the new node knows its master", func(ctx context.Context) error {
		_, err := r.Do(ctx, "CLUSTER", "REPLICATE", c.id(master))
		return err
	})
	if err != nil {
		return r, err
	}
	if err := r.inSync(ctx); err != nil {
		return r, err
	}
	return r, c.WaitReady(ctx)
}
