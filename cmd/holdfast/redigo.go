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

// dialRedigo connects with redigo. The pool connects when it is used.
func dialRedigo(cred credentials) (*server, error) {
	options := []redis.DialOption{
		redis.DialUsername(cred.user), redis.DialPassword(cred.password), redis.DialDatabase(cred.db),
		redis.DialContextFunc(cred.dial), redis.DialConnectTimeout(dialTimeout),
		redis.DialReadTimeout(dialTimeout), redis.DialWriteTimeout(dialTimeout),
	}
	newPool := func(addr string, options ...redis.DialOption) (*redis.Pool, error) {
		return &redis.Pool{MaxIdle: 16, DialContext: func(ctx context.Context) (redis.Conn, error) {
			return redis.DialContext(ctx, cred.network, addr, options...)
		}}, nil
	}
	var pool interface {
		redigo.Pool
		Close() error
	}
	switch cred.kind {
	case cluster:
		pool = &redisc.Cluster{StartupNodes: cred.addrs, DialOptions: options, CreatePool: newPool}
	case sentinel:
		pool = cred.sentinelPool(options)
	default:
		pool, _ = newPool(cred.addrs[0], options...)
	}
	drv, err := redigo.New(pool)
	if err != nil {
		_ = pool.Close()
		return nil, err
	}
	return &server{drv: drv, close: func() { _ = pool.Close() }}, nil
}

// dial opens a connection, with TLS if there is a configuration. Unlike redigo's own it obeys ctx
// in the handshake too.
func (cred credentials) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	d := net.Dialer{Timeout: dialTimeout}
	if cred.tlsConfig == nil {
		return d.DialContext(ctx, network, addr)
	}
	return (&tls.Dialer{NetDialer: &d, Config: cred.tlsConfig}).DialContext(ctx, network, addr)
}

// sentinelPool returns a pool that asks the Sentinels for the master.
func (cred credentials) sentinelPool(options []redis.DialOption) *redis.Pool {
	sentinels := &fzambia.Sentinel{
		Addrs:      slices.Clone(cred.addrs), // it sorts them
		MasterName: cred.master,
		Dial: func(addr string) (redis.Conn, error) {
			return redis.Dial("tcp", addr, redis.DialContextFunc(cred.dial), redis.DialPassword(cred.sentinelPassword),
				redis.DialConnectTimeout(dialTimeout), redis.DialReadTimeout(dialTimeout), redis.DialWriteTimeout(dialTimeout))
		},
	}
	var one sync.Mutex // MasterAddr sorts a shared list
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
