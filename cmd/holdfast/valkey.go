package main

import (
	valkeygo "github.com/valkey-io/valkey-go"

	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/providers/valkey"
)

// dialValkey connects with valkey-go. To a Cluster and to Sentinels it connects at once.
func dialValkey(cred credentials) (*server, error) {
	opts := valkeygo.ClientOption{
		InitAddress: cred.addrs, Username: cred.user, Password: cred.password, SelectDB: cred.db, TLSConfig: cred.tlsConfig,
		Dialer:            cred.dialer(),
		ConnWriteTimeout:  readTimeout, // bounds replies too
		DialCtxFn:         cred.dialWhenUsed(),
		DisableCache:      true,
		ForceSingleClient: cred.kind == oneServer, // returns a client even if the server does not answer
	}
	if cred.kind == sentinel {
		opts.Sentinel = valkeygo.SentinelOption{MasterSet: cred.master, Password: cred.sentinelPassword, TLSConfig: cred.tlsConfig}
	}
	c, err := valkeygo.NewClient(opts)
	if c == nil {
		return nil, driver.NotSent(err)
	}
	drv, err := valkey.New(c)
	if err != nil {
		c.Close()
		return nil, err
	}
	return &server{drv: drv, close: c.Close}, nil
}
