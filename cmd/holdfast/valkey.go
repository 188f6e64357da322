package main

import (
	"context"
	"crypto/tls"
	"net"

	valkeygo "github.com/valkey-io/valkey-go"

	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/providers/valkey"
)

// dialValkey connects with valkey-go. To a Cluster and to Sentinels it connects at once.
func dialValkey(a access) (*server, error) {
	opts := valkeygo.ClientOption{
		InitAddress: a.addrs, Username: a.user, Password: a.password, SelectDB: a.db, TLSConfig: a.tlsConfig,
		Dialer:            net.Dialer{Timeout: dialTimeout},
		DisableCache:      true,
		ForceSingleClient: a.kind == oneServer, // returns a client even if the server does not answer
	}
	if a.kind == sentinel {
		opts.Sentinel = valkeygo.SentinelOption{MasterSet: a.master, Password: a.sentinelPassword, TLSConfig: a.tlsConfig}
	}
	if a.network == "unix" {
		opts.DialCtxFn = func(ctx context.Context, addr string, d *net.Dialer, _ *tls.Config) (net.Conn, error) {
			return d.DialContext(ctx, "unix", addr)
		}
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
