package conformance_test

import (
	"fmt"
	"testing"

	"github.com/holdfast-go/holdfast/conformance"
	"github.com/holdfast-go/holdfast/conformance/internal/respdriver"
	"github.com/holdfast-go/holdfast/locker/driver"
)

// One test proves an adapter. Here it is respdriver, which needs no client library.
func ExampleRun() {
	_ = func(t *testing.T) { // func TestConformance(t *testing.T)
		conformance.Run(t, conformance.Harness{
			Dial: func(_ conformance.TB, target conformance.Target) (driver.Driver, error) {
				return respdriver.New(respdriver.Config{
					Addrs:      target.Addrs,
					Cluster:    target.Kind == conformance.Cluster,
					MasterName: target.MasterName,
					Username:   target.Username,
					Password:   target.Password,
					TLS:        target.TLS,
				}), nil
			},
		})
	}
	// Output:
}

func ExampleCases() {
	for _, c := range conformance.Cases() {
		if c.Contract == 5 {
			fmt.Printf("%s, since %s\n", c.Name, c.Why)
			break
		}
	}
	// Output:
	// a closed driver ends the use of its locks, since use after Close is told as what it is: no contention, no loss
}
