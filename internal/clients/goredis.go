package clients

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/holdfast-go/holdfast/conformance/drivertest"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/providers/goredis"
)

// patience replaces the clients' timeouts in real time, which end calls to a server that pauses. Only
// the search for the successor of a frozen master waits for it.
const patience = 30 * time.Second

// goredisInFakeTime sets the options of a client in fake time, if target is there: the dialer; a
// pool too large to exhaust, since waiting for a connection would end by a timeout; and no
// notifications of maintenance, since go-redis waits for their handshake with a mutex.
func goredisInFakeTime(opts *redis.UniversalOptions, target drivertest.Target) {
	if target.Dial == nil {
		return
	}
	opts.Dialer, opts.PoolSize = target.Dial, 1000
	opts.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
}

// Goredis dials with go-redis.
func Goredis(tb testing.TB, target drivertest.Target) (driver.Driver, error) {
	tb.Helper()
	return dialGoredis(tb, target, true)
}

// GoredisDefaults dials with go-redis, without the ContextTimeoutEnabled advised by its provider.
func GoredisDefaults(tb testing.TB, target drivertest.Target) (driver.Driver, error) {
	tb.Helper()
	return dialGoredis(tb, target, false)
}

func dialGoredis(tb testing.TB, target drivertest.Target, contextTimeout bool) (driver.Driver, error) {
	tb.Helper()
	opts := &redis.UniversalOptions{
		Addrs:                 target.Addrs,
		MasterName:            target.MasterName,
		IsClusterMode:         target.Kind == drivertest.Cluster,
		Username:              target.Username,
		Password:              target.Password,
		TLSConfig:             target.TLS,
		ContextTimeoutEnabled: contextTimeout,
	}
	if target.Dial == nil && contextTimeout {
		opts.DialTimeout, opts.ReadTimeout, opts.WriteTimeout, opts.PoolTimeout = patience, patience, patience, patience
	}
	goredisInFakeTime(opts, target)
	client := redis.NewUniversalClient(opts)
	tb.Cleanup(func() { _ = client.Close() })
	return goredis.New(client)
}
