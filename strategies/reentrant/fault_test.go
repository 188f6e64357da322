package reentrant_test

import (
	"testing"

	"github.com/alicebob/miniredis/v2"

	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/strategies/internal/faultdriver"
	"github.com/holdfast-go/holdfast/strategies/reentrant"
)

// fault is what happens to one command.
type fault = faultdriver.Fault

// bench is a server in memory, in fake time, and a Locker on it.
type bench struct {
	*reentrant.Locker
	drv *faultdriver.Driver
	m   *miniredis.Miniredis
}

// newBench is for synctest bubbles: no packet leaves the process.
func newBench(t *testing.T, cfg reentrant.Config) bench {
	t.Helper()
	m := clients.NewMemory(t)
	drv := &faultdriver.Driver{Driver: clients.OpenMemory(t, m), T: t}
	t.Cleanup(drv.WaitLate)
	return bench{locker.Must(reentrant.New(drv, cfg)), drv, m}
}
