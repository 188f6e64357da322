package main

import (
	redis "github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/providers/rueidis"
)

// dialRueidis connects with rueidis. To a Cluster and to Sentinels it connects at once.
func dialRueidis(cred credentials) (*server, error) {
	opts := redis.ClientOption{
		InitAddress: cred.addrs, Username: cred.user, Password: cred.password, SelectDB: cred.db, TLSConfig: cred.tlsConfig,
		Dialer:            cred.dialer(),
		ConnWriteTimeout:  readTimeout, // bounds replies too
		DialCtxFn:         cred.dialWhenUsed(),
		DisableCache:      true,
		ForceSingleClient: cred.kind == oneServer, // returns a client even if the server does not answer
	}
	if cred.kind == sentinel {
		opts.Sentinel = redis.SentinelOption{MasterSet: cred.master, Password: cred.sentinelPassword, TLSConfig: cred.tlsConfig}
	}
	c, err := redis.NewClient(opts)
	if c == nil {
		return nil, driver.NotSent(err)
	}
	drv, err := rueidis.New(c)
	if err != nil {
		c.Close()
		return nil, err
	}
	return &server{drv: drv, close: c.Close}, nil
}
