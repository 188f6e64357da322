package goredis_test

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// kinds are the clients for a driver, each for the server of the options.
var kinds = map[string]func(*redis.Options) redis.UniversalClient{
	"single": single, "cluster": cluster, "cluster with ReadOnly": readOnlyCluster, "unknown": unknown,
}

func single(o *redis.Options) redis.UniversalClient { return redis.NewClient(o) }

// unknown is a client of a type unknown to the adapter.
func unknown(o *redis.Options) redis.UniversalClient {
	type wrapper struct{ redis.UniversalClient }
	return wrapper{redis.NewClient(o)}
}

// cluster is a client of a cluster with one node.
func cluster(o *redis.Options) redis.UniversalClient { return newCluster(o, false) }

// readOnlyCluster is a cluster client that may read from replicas.
func readOnlyCluster(o *redis.Options) redis.UniversalClient { return newCluster(o, true) }

func newCluster(o *redis.Options, readOnly bool) redis.UniversalClient {
	return redis.NewClusterClient(&redis.ClusterOptions{
		Addrs: []string{o.Addr}, Password: o.Password, Dialer: o.Dialer, MaxRetries: o.MaxRetries, ReadOnly: readOnly,
		OnConnect: o.OnConnect, CredentialsProvider: o.CredentialsProvider,
		CredentialsProviderContext: o.CredentialsProviderContext, StreamingCredentialsProvider: o.StreamingCredentialsProvider,
		PoolSize: o.PoolSize, Protocol: o.Protocol, ReadTimeout: o.ReadTimeout, WriteTimeout: o.WriteTimeout, ContextTimeoutEnabled: o.ContextTimeoutEnabled,
		ClusterSlots: func(context.Context) ([]redis.ClusterSlot, error) {
			return []redis.ClusterSlot{{End: 16383, Nodes: []redis.ClusterNode{{Addr: o.Addr}}}}, nil
		},
	})
}
