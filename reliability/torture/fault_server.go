package main

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/internal/sibling"
)

var serverFaults = []fault{
	{kind: "server killed and restarted", at: fixed, do: onServer(func(ctx context.Context, d *disturber, s *redistest.Server) error {
		return d.restart(ctx, s, s.Restart)
	})},
	frozenServer,
	{kind: "out of memory", at: anywhere, do: configured("maxmemory", "1", "0")},
	{kind: "read-only by min-replicas-to-write", at: anywhere, do: configured("min-replicas-to-write", "9", "0")},
	{kind: "read-only as a replica of nobody", at: standalone, do: onServer(func(ctx context.Context, d *disturber, s *redistest.Server) error {
		if _, err := s.Command("REPLICAOF", "127.0.0.1", 1); err != nil {
			return err
		}
		d.wait(ctx)
		_, err := s.Command("REPLICAOF", "NO", "ONE")
		return err
	})},
	{kind: "scripts flushed", brief: true, at: anywhere, do: sent("SCRIPT", "FLUSH")},
	{kind: "clients killed", brief: true, at: anywhere, do: killed("normal")},
	{kind: "subscribers killed", brief: true, at: anywhere, do: killed("pubsub")},
	{kind: "slot moved", at: clustered, do: moveSlot},
	{kind: "server restarted empty", loses: true, at: fixed, do: onServer(func(ctx context.Context, d *disturber, s *redistest.Server) error {
		defer d.losing(time.Now())
		return d.restart(ctx, s, s.RestartEmpty)
	})},
	{kind: "all keys deleted", loses: true, at: anywhere, do: onServer(func(ctx context.Context, d *disturber, s *redistest.Server) error {
		defer d.losing(time.Now())
		_, err := s.Command("FLUSHALL")
		return err
	})},
	{kind: "failover on demand", loses: true, at: sentinel, do: func(ctx context.Context, d *disturber) error {
		_, err := d.deployment.sentinel.Failover(context.WithoutCancel(ctx))
		return err
	}},
	{kind: "failover after a kill", loses: true, at: sentinel, do: func(ctx context.Context, d *disturber) error {
		behind := context.WithoutCancel(ctx)
		old, err := d.deployment.sentinel.KillMaster(behind)
		if err != nil {
			return err
		}
		if _, err := d.deployment.sentinel.WaitSuccessor(behind, old); err != nil {
			return err
		}
		return old.Restart(behind)
	}},
	{kind: "cluster failover on demand", loses: true, at: replicated, do: onPair(func(ctx context.Context, d *disturber, _, replica *redistest.Server) error {
		return d.deployment.cluster.Failover(ctx, replica)
	})},
	{kind: "cluster failover after a kill", loses: true, at: replicated, do: onPair(func(ctx context.Context, d *disturber, master, replica *redistest.Server) error {
		c := d.deployment.cluster
		if err := master.Kill(); err != nil {
			return err
		}
		if err := c.WaitMaster(ctx, replica); err != nil {
			return err
		}
		if err := master.Restart(ctx); err != nil {
			return err
		}
		return c.WaitMasters(ctx)
	})},
}

var frozenServer = fault{kind: "server frozen", at: fixed, do: onServer(func(ctx context.Context, d *disturber, s *redistest.Server) error {
	if d.trouble != nil {
		d.trouble.frozen = s
	}
	if err := s.Freeze(); err != nil {
		return err
	}
	d.wait(ctx)
	return s.Thaw()
})}

func onServer(do func(context.Context, *disturber, *redistest.Server) error) func(context.Context, *disturber) error {
	return func(ctx context.Context, d *disturber) error {
		s, err := d.server(context.WithoutCancel(ctx))
		if err != nil {
			return err
		}
		return do(ctx, d, s)
	}
}

// onPair returns a fault of a master of a cluster and its replica. It is completed even if the
// round ends.
func onPair(do func(ctx context.Context, d *disturber, master, replica *redistest.Server) error) func(context.Context, *disturber) error {
	return onServer(func(ctx context.Context, d *disturber, master *redistest.Server) error {
		behind := context.WithoutCancel(ctx)
		replica, err := d.deployment.cluster.Replica(behind, master)
		if err != nil {
			return err
		}
		return do(behind, d, master, replica)
	})
}

// sent returns a fault by one command.
func sent(words ...any) func(context.Context, *disturber) error {
	return onServer(func(_ context.Context, _ *disturber, s *redistest.Server) error {
		_, err := s.Command(words...)
		return err
	})
}

// killed kills the clients of a type, if there are any.
func killed(class string) func(context.Context, *disturber) error {
	return onServer(func(_ context.Context, _ *disturber, s *redistest.Server) error {
		reply, err := s.Command("CLIENT", "KILL", "TYPE", class)
		if n, ok := reply.(int64); err == nil && ok && n == 0 {
			return errNothing
		}
		return err
	})
}

// configured returns a fault by a temporary value of a setting.
func configured(name, bad, good string) func(context.Context, *disturber) error {
	return onServer(func(ctx context.Context, d *disturber, s *redistest.Server) error {
		if _, err := s.Command("CONFIG", "SET", name, bad); err != nil {
			return err
		}
		d.wait(ctx)
		_, err := s.Command("CONFIG", "SET", name, good)
		return err
	})
}

// restart kills a server, and starts it again after a while.
func (d *disturber) restart(ctx context.Context, s *redistest.Server, start func(context.Context) error) error {
	if err := s.Kill(); err != nil {
		return err
	}
	d.wait(ctx)
	behind := context.WithoutCancel(ctx) // the server is started again even if the round ends
	if err := start(behind); err != nil {
		return err
	}
	if d.deployment.cluster != nil {
		return d.deployment.cluster.WaitReady(behind)
	}
	return nil
}

// losing records a possible loss of servers' state from a time until now.
func (d *disturber) losing(from time.Time) { d.rec.Lose("", d.rec.At(from), d.rec.Now()) }

// moveSlot moves the slot of a name in use, key by key, with pauses.
func moveSlot(ctx context.Context, d *disturber) error {
	behind := context.WithoutCancel(ctx)
	name := d.nameInUse()
	c := d.deployment.cluster
	slot := redistest.Slot(name)
	to := c.Nodes()[d.random.IntN(clusterOf)]
	for to == c.NodeForSlot(slot) {
		to = c.Nodes()[d.random.IntN(clusterOf)]
	}
	m, err := c.BeginMove(behind, slot, to)
	if err != nil {
		return err
	}
	keys := []string{name, "{" + name + "}" + fenceSuffix, "{" + name + "}" + sibling.WaitersSuffix}
	d.random.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	for _, key := range keys {
		pause(ctx, d.lasting()/4)
		if err := m.Migrate(behind, key); err != nil {
			return err
		}
	}
	pause(ctx, d.lasting()/4)
	return m.Finish(behind)
}
