package drivertest_test

import (
	"testing"

	"github.com/holdfast-go/holdfast/conformance/drivertest"
	"github.com/holdfast-go/holdfast/conformance/internal/respdriver"
	"github.com/holdfast-go/holdfast/locker/driver"
)

// One test proves an adapter: here respdriver, without a client library.
func ExampleRun() {
	_ = func(t *testing.T) { // func TestDriver(t *testing.T)
		drivertest.Run(t, drivertest.Harness{
			Dial: func(_ testing.TB, target drivertest.Target) (driver.Driver, error) {
				return respdriver.New(respdriver.Config{
					Addrs:      target.Addrs,
					Cluster:    target.Kind == drivertest.Cluster,
					MasterName: target.MasterName,
					Username:   target.Username,
					Password:   target.Password,
					TLS:        target.TLS,
					Dial:       target.Dial,
				}), nil
			},
		})
	}
	// Output:
}
