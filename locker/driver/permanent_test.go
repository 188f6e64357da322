package driver_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/holdfast-go/holdfast/locker/driver"
)

func TestFinal(t *testing.T) {
	t.Parallel()
	cause := errors.New("no number")
	err := fmt.Errorf("acquire: %w", driver.Permanent(cause))
	if !errors.Is(err, driver.ErrPermanent) || !errors.Is(err, cause) || err.Error() != "acquire: no number" {
		t.Errorf("%v does not match ErrPermanent and its cause, or says more", err)
	}
	if driver.Transient(err) || driver.NotExecuted(err) {
		t.Error("a final answer passes, or was not executed")
	}
	if driver.Permanent(nil) != nil {
		t.Error("Permanent(nil) is an error")
	}
}
