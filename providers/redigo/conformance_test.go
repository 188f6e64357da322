package redigo_test

import (
	"testing"

	"github.com/holdfast-go/holdfast/conformance"
	"github.com/holdfast-go/holdfast/conformance/drivertest"
	"github.com/holdfast-go/holdfast/internal/clients"
)

func TestDriver(t *testing.T) {
	t.Parallel()
	drivertest.Run(t, drivertest.Harness{Dial: clients.Redigo})
}

func TestLocks(t *testing.T) {
	t.Parallel()
	conformance.Run(t, conformance.Harness{Dial: clients.Redigo, On: clients.LocksOn("redigo")})
}
