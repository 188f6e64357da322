package goredis

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/driver/adapter"
)

// unknownPool bounds the flights to each part of a client that reports neither its servers nor its
// number of connections.
const unknownPool = 64

// servers holds a pipeline per server, with as many flights as the client has connections. Commands
// beyond that would wait in the client's queue, where it is not known whether they were sent, and
// would stay there when their callers give up.
type servers struct {
	client adapter.Client
	find   func(ctx context.Context, key string) (*redis.Client, error) // the server of a key; nil: there is only one
	// one is to the only server; nil if there may be several
	one   *adapter.Pipeline
	parts *adapter.SlotPipelines // of what has no server of its own; nil if there is only one
	nodes *nodes
}

type nodes struct {
	asked     atomic.Bool // the client knows the nodes, and asks for them anew in the background
	mu        sync.RWMutex
	byAddress map[string]*adapter.Pipeline
}

func newServers(client redis.UniversalClient, c adapter.Client) servers {
	s := servers{client: c, nodes: &nodes{byAddress: map[string]*adapter.Pipeline{}}}
	switch client := client.(type) {
	case masters:
		s.find = client.MasterForKey
	case interface {
		GetShardClientForKey(key string) (*redis.Client, error)
	}:
		s.find = func(_ context.Context, key string) (*redis.Client, error) { return client.GetShardClientForKey(key) }
	case interface{ Options() *redis.Options }:
		c.Connections = connections(client.Options())
		s.one = adapter.NewPipeline(c)
		return s
	}
	part := c
	part.Connections = unknownPool
	part.Send = func(ctx context.Context, commands []*adapter.Command) {
		c.Send(ctx, commands)
		s.nodes.asked.Store(true)
	}
	s.parts = adapter.NewSlotPipelines(part)
	return s
}

func connections(o *redis.Options) int {
	if o.MaxActiveConns > 0 {
		return min(o.PoolSize, o.MaxActiveConns)
	}
	return o.PoolSize
}

// pipeline returns the pipeline to key's server.
func (s *servers) pipeline(key string) *adapter.Pipeline {
	switch {
	case s.one != nil:
		return s.one
	case s.find == nil, key == "", !s.nodes.asked.Load():
		return s.parts.Of(key)
	}
	client, err := s.find(context.Background(), key)
	if err != nil {
		return s.parts.Of(key) // the call will find out what is wrong
	}
	addr := client.Options().Addr
	s.nodes.mu.RLock()
	p := s.nodes.byAddress[addr]
	s.nodes.mu.RUnlock()
	if p != nil {
		return p
	}
	s.nodes.mu.Lock()
	defer s.nodes.mu.Unlock()
	if p = s.nodes.byAddress[addr]; p == nil {
		c := s.client
		c.Connections = connections(client.Options())
		p = adapter.NewPipeline(c)
		s.nodes.byAddress[addr] = p
	}
	return p
}

func (s *servers) close() {
	if s.one != nil {
		s.one.Close()
		return
	}
	s.parts.Close()
	s.nodes.mu.RLock()
	defer s.nodes.mu.RUnlock()
	for _, p := range s.nodes.byAddress {
		p.Close()
	}
}

// inline returns the Inline of a client. With negative timeouts a client sets no deadlines, and a
// ReadOnly cluster client asks a server for the list of commands, whatever the context says.
func inline(client redis.UniversalClient) func(ctx context.Context) bool {
	obeysDeadline := false
	switch c := client.(type) {
	case *redis.Client:
		o := c.Options()
		obeysDeadline = o.ContextTimeoutEnabled && o.ReadTimeout >= 0 && o.WriteTimeout >= 0
	case *redis.ClusterClient:
		o := c.Options()
		obeysDeadline = o.ContextTimeoutEnabled && o.ReadTimeout >= 0 && o.WriteTimeout >= 0 && !o.ReadOnly
	}
	return func(ctx context.Context) bool { return obeysDeadline && !driver.Cancellable(ctx) }
}
