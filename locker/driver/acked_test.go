package driver_test

import (
	"testing"

	"github.com/holdfast-go/holdfast/locker/driver"
)

// WaitRefused reports the refusal of a WAIT, not that of a script.
func TestWaitRefused(t *testing.T) {
	t.Parallel()
	refused := serverError("NOPERM no WAIT")
	if driver.WaitRefused(refused) || driver.WaitRefused(nil) || !driver.WaitRefused(&driver.WaitError{Err: refused}) {
		t.Error("WaitRefused does not tell whose refusal it was")
	}
}
