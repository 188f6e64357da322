package valkey_test

import (
	"testing"

	"github.com/holdfast-go/holdfast/conformance"
	"github.com/holdfast-go/holdfast/conformance/drivertest"
	"github.com/holdfast-go/holdfast/internal/clients"
)

// TestDriver and TestLocks run one after the other: storms in fake time delay the answers of real
// servers.
func TestDriver(t *testing.T) {
	drivertest.Run(t, drivertest.Harness{Dial: clients.Valkey})
}

func TestLocks(t *testing.T) {
	conformance.Run(t, conformance.Harness{Dial: clients.Valkey, On: clients.LocksOn("valkey")})
}

// TestRESP2 runs both suites over a client with RESP2.
func TestRESP2(t *testing.T) { clients.RunAll(t, clients.ValkeyRESP2) }
