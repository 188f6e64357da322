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
	err := fmt.Errorf("acquire: %w", driver.Final(cause))
	if !errors.Is(err, driver.ErrFinal) || !errors.Is(err, cause) || err.Error() != "acquire: no number" {
		t.Errorf("%v does not match ErrFinal and its cause, or says more", err)
	}
	if driver.Passing(err) || driver.NotExecuted(err) {
		t.Error("a final answer passes, or was not executed")
	}
	if driver.Final(nil) != nil {
		t.Error("Final(nil) is an error")
	}
}
