package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"

	fzambia "github.com/FZambia/sentinel/v2"
	"github.com/gomodule/redigo/redis"
	"github.com/mna/redisc"

	"github.com/holdfast-go/holdfast/providers/redigo"
)

// dialRedigo connects with redigo, which connects when it is used.
func dialRedigo(a access) (*server, error) {
	options := []redis.DialOption{
		redis.DialUsername(a.user), redis.DialPassword(a.password), redis.DialDatabase(a.db),
		redis.DialContextFunc(a.dial), redis.DialConnectTimeout(dialTimeout), redis.DialWriteTimeout(dialTimeout),
	}
	newPool := func(addr string, options ...redis.DialOption) (*redis.Pool, error) {
		return &redis.Pool{MaxIdle: 16, DialContext: func(ctx context.Context) (redis.Conn, error) {
			return redis.DialContext(ctx, a.network, addr, options...)
		}}, nil
	}
	var pool interface {
		redigo.Pool
		Close() error
	}
	switch a.kind {
	case cluster:
		pool = &redisc.Cluster{StartupNodes: a.addrs, DialOptions: options, CreatePool: newPool}
	case sentinel:
		pool = a.sentinelPool(options)
	default:
		pool, _ = newPool(a.addrs[0], options...)
	}
	drv, err := redigo.New(pool)
	if err != nil {
		_ = pool.Close()
		return nil, err
	}
	return &server{drv: drv, close: func() { _ = pool.Close() }}, nil
}

// dial opens a connection, with TLS if there is a configuration. Unlike redigo's own it obeys ctx in
// the handshake too.
func (a access) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	d := net.Dialer{Timeout: dialTimeout}
	if a.tlsConfig == nil {
		return d.DialContext(ctx, network, addr)
	}
	return (&tls.Dialer{NetDialer: &d, Config: a.tlsConfig}).DialContext(ctx, network, addr)
}

// sentinelPool returns a pool that asks the Sentinels for the master.
func (a access) sentinelPool(options []redis.DialOption) *redis.Pool {
	sentinels := &fzambia.Sentinel{
		Addrs:      slices.Clone(a.addrs), // it sorts them
		MasterName: a.master,
		Dial: func(addr string) (redis.Conn, error) {
			return redis.Dial("tcp", addr, redis.DialContextFunc(a.dial), redis.DialPassword(a.sentinelPassword),
				redis.DialConnectTimeout(dialTimeout), redis.DialReadTimeout(dialTimeout), redis.DialWriteTimeout(dialTimeout))
		},
	}
	var one sync.Mutex // concurrent calls would read a list that they sort
	masterAddr := func() (string, error) {
		one.Lock()
		defer one.Unlock()
		return sentinels.MasterAddr()
	}
	return &redis.Pool{MaxIdle: 16, Dial: func() (redis.Conn, error) {
		addr, err := masterAddr()
		if err != nil {
			return nil, err
		}
		c, err := redis.Dial("tcp", addr, options...)
		if err != nil {
			return nil, err
		}
		if ok, err := fzambia.TestRole(c, "master"); !ok || err != nil {
			_ = c.Close()
			return nil, errors.Join(fmt.Errorf("%s is no master", addr), err)
		}
		return c, nil
	}}
}
