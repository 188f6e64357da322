package clients

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/conformance/drivertest"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/providers/goredis"
)

// Goredis dials with go-redis.
func Goredis(tb testing.TB, target drivertest.Target) (driver.Driver, error) {
	client := redis.NewUniversalClient(&redis.UniversalOptions{
		Addrs:                 target.Addrs,
		MasterName:            target.MasterName,
		IsClusterMode:         target.Kind == drivertest.Cluster,
		Username:              target.Username,
		Password:              target.Password,
		TLSConfig:             target.TLS,
		ContextTimeoutEnabled: true,
	})
	tb.Cleanup(func() { _ = client.Close() })
	return goredis.New(client)
}
