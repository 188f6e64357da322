package reentrant_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/conformance"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/providers/goredis"
	"github.com/holdfast-go/holdfast/strategies/reentrant"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	conformance.Run(t, conformance.Harness{
		Name: "reentrant over goredis",
		Dial: func(tb conformance.TB, target conformance.Target) (driver.Driver, error) {
			client := redis.NewUniversalClient(&redis.UniversalOptions{
				Addrs: target.Addrs, MasterName: target.MasterName, IsClusterMode: target.Kind == conformance.Cluster,
				Username: target.Username, Password: target.Password, TLSConfig: target.TLS, ContextTimeoutEnabled: true,
			})
			tb.Cleanup(func() { _ = client.Close() })
			return goredis.New(client)
		},
		New: func(drv driver.Driver) (locker.Locker, error) {
			return reentrant.New(drv, reentrant.Config{AttemptTimeout: 500 * time.Millisecond})
		},
		Can:       conformance.Capabilities{Reentrant: true, Hash: true},
		LocksOnly: true,
	})
}
