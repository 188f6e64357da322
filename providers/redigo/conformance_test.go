package redigo_test

import (
	"crypto/tls"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/mna/redisc"

	"github.com/holdfast-go/holdfast/conformance"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/providers/redigo"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	conformance.Run(t, conformance.Harness{Dial: dialTarget})
}

// dialTarget follows the recipes of the package documentation.
func dialTarget(tb conformance.TB, target conformance.Target) (driver.Driver, error) {
	options := []redis.DialOption{
		redis.DialUsername(target.Username), redis.DialPassword(target.Password), redis.DialConnectTimeout(2 * time.Second),
	}
	if target.TLS != nil {
		options = append(options, redis.DialContextFunc((&tls.Dialer{Config: target.TLS}).DialContext))
	}
	var pool interface {
		redigo.Pool
		Close() error
	}
	switch target.Kind {
	case conformance.Cluster:
		pool = &redisc.Cluster{
			StartupNodes: target.Addrs,
			DialOptions:  options,
			CreatePool: func(addr string, options ...redis.DialOption) (*redis.Pool, error) {
				return prompt(addr, options...), nil
			},
		}
	case conformance.Sentinel:
		pool = sentinelPool(tb, target.Addrs, target.MasterName, options...)
	default:
		pool = prompt(target.Addrs[0], options...)
	}
	tb.Cleanup(func() { pool.Close() })
	return redigo.New(pool)
}
