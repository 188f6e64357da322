package rueidis_test

import (
	"testing"

	redis "github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/conformance"
	"github.com/holdfast-go/holdfast/conformance/drivertest"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/providers/rueidis"
)

func TestDriver(t *testing.T) {
	t.Parallel()
	overClients(t, func(t *testing.T, dial dialer) {
		t.Helper()
		drivertest.Run(t, drivertest.Harness{Dial: dial})
	})
}

func TestLocks(t *testing.T) {
	t.Parallel()
	overClients(t, func(t *testing.T, dial dialer) {
		t.Helper()
		conformance.Run(t, conformance.Harness{Dial: dial})
	})
}

type dialer = func(testing.TB, drivertest.Target) (driver.Driver, error)

// overClients runs f over a client with its defaults, and over one with RESP2.
func overClients(t *testing.T, f func(*testing.T, dialer)) {
	t.Helper()
	for name, resp2 := range map[string]bool{"Defaults": false, "RESP2": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if testing.Short() && name != "Defaults" {
				t.Skip("-short leaves out clients with other options than the defaults")
			}
			f(t, func(tb testing.TB, target drivertest.Target) (driver.Driver, error) {
				opts := redis.ClientOption{
					InitAddress:       target.Addrs,
					Sentinel:          redis.SentinelOption{MasterSet: target.MasterName},
					Username:          target.Username,
					Password:          target.Password,
					TLSConfig:         target.TLS,
					ForceSingleClient: target.Miniredis,
					AlwaysRESP2:       target.Miniredis || resp2,
					DisableCache:      target.Miniredis || resp2,
				}
				if target.Miniredis {
					opts.PipelineMultiplex = -1 // one connection, since the suite has miniredis refuse what comes with new ones too
				}
				client, err := redis.NewClient(opts)
				if err != nil {
					return nil, driver.NotSent(err) // it logs in at once
				}
				tb.Cleanup(client.Close)
				return rueidis.New(client)
			})
		})
	}
}
