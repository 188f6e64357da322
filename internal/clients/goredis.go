package clients

import (
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/conformance"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/providers/goredis"
)

// Goredis dials with go-redis.
func Goredis(tb conformance.TB, target conformance.Target) (driver.Driver, error) {
	client := redis.NewUniversalClient(&redis.UniversalOptions{
		Addrs:                 target.Addrs,
		MasterName:            target.MasterName,
		IsClusterMode:         target.Kind == conformance.Cluster,
		Username:              target.Username,
		Password:              target.Password,
		TLSConfig:             target.TLS,
		ContextTimeoutEnabled: true,
	})
	tb.Cleanup(func() { _ = client.Close() })
	return goredis.New(client)
}
