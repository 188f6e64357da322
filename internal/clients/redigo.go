package clients

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/FZambia/sentinel/v2"
	"github.com/gomodule/redigo/redis"
	"github.com/mna/redisc"

	"github.com/holdfast-go/holdfast/conformance/drivertest"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/providers/redigo"
)

// Redigo dials with redigo.
func Redigo(tb testing.TB, target drivertest.Target) (driver.Driver, error) {
	options := []redis.DialOption{
		redis.DialUsername(target.Username), redis.DialPassword(target.Password),
		redis.DialConnectTimeout(patience),
	}
	if target.TLS != nil {
		options = append(options, redis.DialContextFunc((&tls.Dialer{Config: target.TLS}).DialContext))
	}
	if target.Dial != nil {
		options = append(options, redis.DialContextFunc(target.Dial))
	} else {
		options = append(options, redis.DialReadTimeout(patience))
	}
	var pool interface {
		redigo.Pool
		Close() error
	}
	switch target.Kind {
	case drivertest.Cluster:
		pool = &redisc.Cluster{
			StartupNodes: target.Addrs,
			DialOptions:  options,
			CreatePool: func(addr string, options ...redis.DialOption) (*redis.Pool, error) {
				return RedigoPool(addr, options...), nil
			},
		}
	case drivertest.Sentinel:
		pool = RedigoSentinel(tb, target.Addrs, target.MasterName, options...)
	default:
		pool = RedigoPool(target.Addrs[0], options...)
	}
	tb.Cleanup(func() { pool.Close() })
	return redigo.New(pool)
}

// RedigoPool is a pool with functions that all obey their context.
func RedigoPool(addr string, options ...redis.DialOption) *redis.Pool {
	return &redis.Pool{MaxIdle: 4, DialContext: func(ctx context.Context) (redis.Conn, error) {
		return redis.DialContext(ctx, "tcp", addr, options...)
	}}
}

// RedigoSentinel is a pool with the master's address from Sentinels.
func RedigoSentinel(tb testing.TB, addrs []string, master string, options ...redis.DialOption) *redis.Pool {
	sntl := &sentinel.Sentinel{
		Addrs:      slices.Clone(addrs), // it reorders them
		MasterName: master,
		Dial: func(addr string) (redis.Conn, error) {
			return redis.Dial("tcp", addr, redis.DialConnectTimeout(patience), redis.DialReadTimeout(patience))
		},
	}
	tb.Cleanup(func() { sntl.Close() })
	var one sync.Mutex // its calls read and sort the same list
	masterAddr := func() (string, error) {
		one.Lock()
		defer one.Unlock()
		return sntl.MasterAddr()
	}
	return &redis.Pool{MaxIdle: 4, Dial: func() (redis.Conn, error) {
		addr, err := masterAddr()
		if err != nil {
			return nil, err
		}
		c, err := redis.Dial("tcp", addr, options...)
		if err != nil {
			return nil, err
		}
		if ok, err := sentinel.TestRole(c, "master"); !ok || err != nil {
			c.Close()
			return nil, errors.Join(fmt.Errorf("%s is no master", addr), err)
		}
		return c, nil
	}}
}
