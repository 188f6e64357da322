package main

import (
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/providers/goredis"
)

// dialGoredis connects with go-redis, which connects when it is used.
func dialGoredis(cred credentials) (*server, error) {
	var c redis.UniversalClient
	switch cred.kind {
	case cluster:
		c = redis.NewClusterClient(&redis.ClusterOptions{
			Addrs: cred.addrs, Username: cred.user, Password: cred.password, TLSConfig: cred.tlsConfig,
			DialTimeout: dialTimeout, ContextTimeoutEnabled: true,
		})
	case sentinel:
		c = redis.NewFailoverClient(&redis.FailoverOptions{
			MasterName: cred.master, SentinelAddrs: cred.addrs, SentinelPassword: cred.sentinelPassword,
			Username: cred.user, Password: cred.password, DB: cred.db, TLSConfig: cred.tlsConfig,
			DialTimeout: dialTimeout, ContextTimeoutEnabled: true,
		})
	default:
		c = redis.NewClient(&redis.Options{
			Network: cred.network, Addr: cred.addrs[0], Username: cred.user, Password: cred.password, DB: cred.db, TLSConfig: cred.tlsConfig,
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
