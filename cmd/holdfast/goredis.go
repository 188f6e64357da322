package main

import (
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/providers/goredis"
)

// newGoredis makes a client of go-redis. It connects when it is used.
func newGoredis(cred credentials) redis.UniversalClient {
	switch cred.kind {
	case cluster:
		return redis.NewClusterClient(&redis.ClusterOptions{
			Addrs: cred.addrs, Username: cred.user, Password: cred.password, TLSConfig: cred.tlsConfig,
			DialTimeout: dialTimeout, ReadTimeout: readTimeout, ContextTimeoutEnabled: true,
		})
	case sentinel:
		return redis.NewFailoverClient(&redis.FailoverOptions{
			MasterName: cred.master, SentinelAddrs: cred.addrs, SentinelPassword: cred.sentinelPassword,
			Username: cred.user, Password: cred.password, DB: cred.db, TLSConfig: cred.tlsConfig,
			DialTimeout: dialTimeout, ReadTimeout: readTimeout, ContextTimeoutEnabled: true,
		})
	default:
		return redis.NewClient(&redis.Options{
			Network: cred.network, Addr: cred.addrs[0], Username: cred.user, Password: cred.password, DB: cred.db, TLSConfig: cred.tlsConfig,
			DialTimeout: dialTimeout, ReadTimeout: readTimeout, ContextTimeoutEnabled: true,
		})
	}
}

func dialGoredis(cred credentials) (*server, error) {
	c := newGoredis(cred)
	drv, err := goredis.New(c)
	if err != nil {
		_ = c.Close()
		return nil, err
	}
	return &server{drv: drv, close: func() { _ = c.Close() }}, nil
}
