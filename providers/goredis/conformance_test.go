package goredis_test

import (
	"testing"

	"github.com/holdfast-go/holdfast/conformance"
	"github.com/holdfast-go/holdfast/conformance/drivertest"
	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/internal/effort"
)

func TestDriver(t *testing.T) {
	t.Parallel()
	drivertest.Run(t, drivertest.Harness{Dial: clients.Goredis})
}

func TestLocks(t *testing.T) {
	t.Parallel()
	conformance.Run(t, conformance.Harness{Dial: clients.Goredis, On: clients.LocksOn("goredis")})
}

// TestDefaults runs both suites over a client without ContextTimeoutEnabled.
func TestDefaults(t *testing.T) {
	t.Parallel()
	effort.NeedFull(t)
	t.Run("driver", func(t *testing.T) {
		t.Parallel()
		drivertest.Run(t, drivertest.Harness{Dial: clients.GoredisDefaults})
	})
	t.Run("locks", func(t *testing.T) {
		t.Parallel()
		conformance.Run(t, conformance.Harness{Dial: clients.GoredisDefaults})
	})
}
