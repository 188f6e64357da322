package goredis

import (
	"context"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/locker/driver/adapter"
)

const (
	// unknownPool bounds the calls in flight to each part of a client that reports neither its
	// servers nor its number of connections.
	unknownPool = 64
	// maxBatches is how many batches are under way at once.
	maxBatches = 256
)

// servers holds a gate per server, with as many places as the client has connections. Calls beyond
// that would wait in the client's queue, where it is not known whether they were sent, and would
// stay there when their callers give up.
type servers struct {
	find func(ctx context.Context, key string) (*redis.Client, error) // the server of a key; nil: there is only one
	// one is of the only server; nil if there may be several
	one     *adapter.Gate
	some    *adapter.SlotGates // of what has no server of its own
	batches *adapter.Gate

	nodes *nodes
}

type nodes struct {
	mu    sync.RWMutex
	gates map[string]*adapter.Gate // by address; empty while the client may have to ask for the nodes
}

func newServers(client redis.UniversalClient) servers {
	s := servers{some: adapter.NewSlotGates(unknownPool), batches: adapter.NewGate(maxBatches),
		nodes: &nodes{gates: map[string]*adapter.Gate{}}}
	switch c := client.(type) {
	case masters:
		s.find = c.MasterForKey
	case interface {
		GetShardClientForKey(key string) (*redis.Client, error)
	}:
		s.find = func(_ context.Context, key string) (*redis.Client, error) { return c.GetShardClientForKey(key) }
	case interface{ Options() *redis.Options }:
		s.one = adapter.NewGate(connections(c.Options()))
	}
	return s
}

func connections(o *redis.Options) int {
	if o.MaxActiveConns > 0 {
		return min(o.PoolSize, o.MaxActiveConns)
	}
	return o.PoolSize
}

// gate returns the gate of key's server. It may have to ask for the nodes of a cluster.
func (s *servers) gate(ctx context.Context, key string) *adapter.Gate {
	if s.one != nil {
		return s.one
	}
	if s.find == nil || key == "" {
		return s.some.Of(key)
	}
	client, err := s.find(ctx, key)
	if err != nil {
		return s.some.Of(key) // the call will find out what is wrong
	}
	addr := client.Options().Addr
	s.nodes.mu.RLock()
	g := s.nodes.gates[addr]
	s.nodes.mu.RUnlock()
	if g != nil {
		return g
	}
	s.nodes.mu.Lock()
	defer s.nodes.mu.Unlock()
	if g = s.nodes.gates[addr]; g == nil {
		g = adapter.NewGate(connections(client.Options()))
		s.nodes.gates[addr] = g
	}
	return g
}

// knownGate returns what gate does, or nil if the client may have to ask the cluster for its nodes
// first. Once it knows them it refreshes them in the background.
func (s *servers) knownGate(key string) *adapter.Gate {
	if s.find != nil {
		s.nodes.mu.RLock()
		known := len(s.nodes.gates) > 0
		s.nodes.mu.RUnlock()
		if !known {
			return nil
		}
	}
	return s.gate(context.Background(), key)
}
