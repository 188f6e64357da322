package driver_test

import (
	"testing"

	"github.com/holdfast-go/holdfast/locker/driver"
)

func TestScript(t *testing.T) {
	t.Parallel()
	s := driver.NewScript("return 1")
	// The reply of SCRIPT LOAD on a server.
	if want := "e0e1f9fabfc9d4800c877a703b823ac0578ff8db"; s.Source() != "return 1" || s.Digest() != want {
		t.Errorf("source %q, digest %s; want %s", s.Source(), s.Digest(), want)
	}
}
