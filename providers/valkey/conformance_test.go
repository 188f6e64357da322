package valkey_test

import (
	"testing"

	"github.com/holdfast-go/holdfast/conformance"
	"github.com/holdfast-go/holdfast/conformance/drivertest"
	"github.com/holdfast-go/holdfast/internal/clients"
)

func TestDriver(t *testing.T) {
	t.Parallel()
	drivertest.Run(t, drivertest.Harness{Dial: clients.Valkey})
}

func TestLocks(t *testing.T) {
	t.Parallel()
	conformance.Run(t, conformance.Harness{Dial: clients.Valkey, On: clients.LocksOn("valkey")})
}

// TestRESP2 runs both suites over a client with RESP2.
func TestRESP2(t *testing.T) { clients.RunAll(t, clients.ValkeyRESP2) }
