package rueidis_test

import (
	"testing"

	redis "github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/conformance"
	"github.com/holdfast-go/holdfast/conformance/drivertest"
	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/providers/rueidis"
)

// TestDriver and TestLocks run one after the other: storms in fake time delay the answers of real
// servers.
func TestDriver(t *testing.T) {
	drivertest.Run(t, drivertest.Harness{Dial: clients.Rueidis})
}

func TestLocks(t *testing.T) {
	conformance.Run(t, conformance.Harness{Dial: clients.Rueidis, On: clients.LocksOn("rueidis")})
}

// TestRESP2 runs both suites over a client with RESP2.
func TestRESP2(t *testing.T) { clients.RunAll(t, clients.RueidisRESP2) }

// TestModes runs the suite for adapters over the other ways rueidis uses its connections.
func TestModes(t *testing.T) {
	t.Parallel()
	for name, set := range clientModes {
		newDriver := rueidis.New
		switch name {
		case "default":
			name, newDriver = "unpipelined", rueidis.NewUnpipelined
		case "one connection":
			continue // as in TestDriver
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			drivertest.Run(t, drivertest.Harness{
				On: []drivertest.Kind{drivertest.Memory},
				Dial: func(tb testing.TB, target drivertest.Target) (driver.Driver, error) {
					opts := single(target.Dial, target.Addrs[0])
					opts.Password = target.Password
					set(&opts)
					opts.PipelineMultiplex = -1 // as clients.Rueidis
					client, err := redis.NewClient(opts)
					if err != nil {
						return nil, driver.NotSent(err)
					}
					tb.Cleanup(client.Close)
					return newDriver(client)
				},
			})
		})
	}
}
