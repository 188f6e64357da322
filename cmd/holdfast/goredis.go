package main

import (
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/providers/goredis"
)

// dialGoredis connects with go-redis, which connects when it is used.
func dialGoredis(a access) (*server, error) {
	var c redis.UniversalClient
	switch a.kind {
	case cluster:
		c = redis.NewClusterClient(&redis.ClusterOptions{
			Addrs: a.addrs, Username: a.user, Password: a.password, TLSConfig: a.tlsConfig,
			DialTimeout: dialTimeout, ContextTimeoutEnabled: true,
		})
	case sentinel:
		c = redis.NewFailoverClient(&redis.FailoverOptions{
			MasterName: a.master, SentinelAddrs: a.addrs, SentinelPassword: a.sentinelPassword,
			Username: a.user, Password: a.password, DB: a.db, TLSConfig: a.tlsConfig,
			DialTimeout: dialTimeout, ContextTimeoutEnabled: true,
		})
	default:
		c = redis.NewClient(&redis.Options{
			Network: a.network, Addr: a.addrs[0], Username: a.user, Password: a.password, DB: a.db, TLSConfig: a.tlsConfig,
			DialTimeout: dialTimeout, ContextTimeoutEnabled: true,
		})
	}
	drv, err := goredis.New(c)
	if err != nil {
		_ = c.Close()
		return nil, err
	}
	return &server{drv: drv, close: func() { _ = c.Close() }}, nil
}
