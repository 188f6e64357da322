package goredis

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/driver/adapter"
)

// unknownPool bounds the flights to each part of a client with unknown servers and connections.
const unknownPool = 64

// servers holds a pipeline per server, with as many flights as the client has connections. Further
// commands would wait in the client's queue: it would not be known whether they were sent, and they
// would stay there when their callers give up.
type servers struct {
	client adapter.Client
	find   func(ctx context.Context, key string) (*redis.Client, error) // the server of a key; nil: it is not known
	parts  adapter.Pipelines                                            // for keys without a known server

	reached   atomic.Bool // the client knows the nodes, and asks for them anew in the background
	mu        sync.RWMutex
	byAddress map[string]*adapter.Pipeline
}

// newPipelines returns the pipelines of client, given all of c but its Connections.
func newPipelines(client redis.UniversalClient, c adapter.Client) adapter.Pipelines {
	s := &servers{client: c, byAddress: map[string]*adapter.Pipeline{}}
	switch client := client.(type) {
	case masters:
		s.find = client.MasterForKey
	case interface {
		GetShardClientForKey(key string) (*redis.Client, error)
	}:
		s.find = func(_ context.Context, key string) (*redis.Client, error) { return client.GetShardClientForKey(key) }
	case interface{ Options() *redis.Options }:
		c.Connections = connections(client.Options())
		return adapter.NewPipeline(c)
	}
	part := c
	part.Connections = unknownPool
	part.Send = func(ctx context.Context, commands []*adapter.Command) {
		c.Send(ctx, commands)
		if !s.reached.Load() && slices.ContainsFunc(commands, answered) {
			s.reached.Store(true)
		}
	}
	s.parts = adapter.NewSlotPipelines(part)
	return s
}

// answered reports whether a server has answered c itself. A refusal of the client's login or of
// CLUSTER SLOTS comes with driver.ErrNotSent.
func answered(c *adapter.Command) bool {
	return c.Err() == nil || driver.CodeOf(c.Err()) != "" && !errors.Is(c.Err(), driver.ErrNotSent)
}

func connections(o *redis.Options) int {
	if o.MaxActiveConns > 0 {
		return min(o.PoolSize, o.MaxActiveConns)
	}
	return o.PoolSize
}

// To implements adapter.Pipelines.
func (s *servers) To(key string) *adapter.Pipeline {
	if s.find == nil || key == "" || !s.reached.Load() {
		return s.parts.To(key)
	}
	client, err := s.find(context.Background(), key)
	if err != nil {
		return s.parts.To(key) // the call will return the error
	}
	addr := client.Options().Addr
	s.mu.RLock()
	p := s.byAddress[addr]
	s.mu.RUnlock()
	if p != nil {
		return p
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if p = s.byAddress[addr]; p == nil {
		c := s.client
		c.Connections = connections(client.Options())
		p = adapter.NewPipeline(c)
		s.byAddress[addr] = p
	}
	return p
}

// Close implements adapter.Pipelines.
func (s *servers) Close() {
	s.parts.Close()
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, p := range s.byAddress {
		p.Close()
	}
}

// inline returns the Inline of a client. With negative timeouts a client sets no deadlines, and a
// ReadOnly cluster client asks a server for the list of commands, whatever the context says. A
// client logs in in the caller's goroutine, and the user's functions for that may ignore the context.
func inline(client redis.UniversalClient) func(ctx context.Context) bool {
	obeysDeadline := false
	switch c := client.(type) {
	case *redis.Client:
		o := c.Options()
		obeysDeadline = o.ContextTimeoutEnabled && o.ReadTimeout >= 0 && o.WriteTimeout >= 0 &&
			o.OnConnect == nil && o.CredentialsProvider == nil && o.CredentialsProviderContext == nil &&
			o.StreamingCredentialsProvider == nil
	case *redis.ClusterClient:
		o := c.Options()
		obeysDeadline = o.ContextTimeoutEnabled && o.ReadTimeout >= 0 && o.WriteTimeout >= 0 && !o.ReadOnly &&
			o.OnConnect == nil && o.CredentialsProvider == nil && o.CredentialsProviderContext == nil &&
			o.StreamingCredentialsProvider == nil
	}
	return func(ctx context.Context) bool { return obeysDeadline && !driver.Cancellable(ctx) }
}
