package goredis_test

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/conformance"
	"github.com/holdfast-go/holdfast/conformance/drivertest"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/providers/goredis"
)

func TestDriver(t *testing.T) {
	t.Parallel()
	overClients(t, func(t *testing.T, dial dialer) {
		t.Helper()
		drivertest.Run(t, drivertest.Harness{Name: "goredis", Dial: dial})
	})
}

func TestLocks(t *testing.T) {
	t.Parallel()
	overClients(t, func(t *testing.T, dial dialer) {
		t.Helper()
		conformance.Run(t, conformance.Harness{Name: "goredis", Dial: dial})
	})
}

type dialer = func(testing.TB, drivertest.Target) (driver.Driver, error)

// overClients runs f over a client as the documentation advises to set it up, and over one with its
// defaults.
func overClients(t *testing.T, f func(*testing.T, dialer)) {
	t.Helper()
	for name, enabled := range map[string]bool{"ContextTimeoutEnabled": true, "Defaults": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if testing.Short() && name != "Defaults" {
				t.Skip("-short leaves out clients with other options than the defaults")
			}
			f(t, func(tb testing.TB, target drivertest.Target) (driver.Driver, error) {
				client := dial(target, enabled)
				tb.Cleanup(func() { _ = client.Close() })
				return goredis.New(client)
			})
		})
	}
}

func dial(target drivertest.Target, contextTimeoutEnabled bool) redis.UniversalClient {
	return redis.NewUniversalClient(&redis.UniversalOptions{
		Addrs:                 target.Addrs,
		MasterName:            target.MasterName,
		IsClusterMode:         target.Kind == drivertest.Cluster,
		Username:              target.Username,
		Password:              target.Password,
		TLSConfig:             target.TLS,
		ContextTimeoutEnabled: contextTimeoutEnabled,
	})
}
