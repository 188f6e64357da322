package redigo_test

import (
	"context"
	"testing"

	"github.com/gomodule/redigo/redis"

	"github.com/holdfast-go/holdfast/conformance"
	"github.com/holdfast-go/holdfast/conformance/drivertest"
	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/providers/redigo"
)

// TestDriver and TestLocks run one after the other: storms in fake time delay the answers of real
// servers.
func TestDriver(t *testing.T) {
	drivertest.Run(t, drivertest.Harness{Dial: clients.Redigo})
}

func TestLocks(t *testing.T) {
	conformance.Run(t, conformance.Harness{Dial: clients.Redigo, On: clients.LocksOn("redigo")})
}

// TestPools runs the suite for adapters over the other kinds of pool.
func TestPools(t *testing.T) {
	t.Parallel()
	for name, kind := range poolKinds {
		newDriver := redigo.New
		if name == "DialContext" {
			name, newDriver = "unpipelined", redigo.NewUnpipelined
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			drivertest.Run(t, drivertest.Harness{
				On: []drivertest.Kind{drivertest.Memory},
				Dial: func(tb testing.TB, target drivertest.Target) (driver.Driver, error) {
					pool := kind(func(ctx context.Context) (redis.Conn, error) {
						return redis.DialContext(ctx, "tcp", target.Addrs[0], redis.DialContextFunc(target.Dial),
							redis.DialPassword(target.Password))
					})
					tb.Cleanup(func() { _ = pool.Close() })
					return newDriver(pool)
				},
			})
		})
	}
}
