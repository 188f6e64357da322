package main

import (
	"errors"
	"fmt"
	"os/exec"
	"syscall"
	"testing"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker/driver"
)

// The error of a Close is reported, except for an unfinished clean-up.
func TestSerious(t *testing.T) {
	t.Parallel()
	leak := errors.New("a connection is left")
	for _, c := range []struct {
		err, want error
	}{
		{nil, nil},
		{driver.ErrCleanUpUnfinished, nil},
		{errors.Join(driver.ErrCleanUpUnfinished), nil},
		{leak, leak},
		{errors.Join(driver.ErrCleanUpUnfinished, leak), leak},
		{errors.Join(errors.Join(driver.ErrCleanUpUnfinished, leak), nil), leak},
	} {
		got := serious(c.err)
		if !errors.Is(got, c.want) || (got == nil) != (c.want == nil) || errors.Is(got, driver.ErrCleanUpUnfinished) {
			t.Errorf("%v: %v, want %v", c.err, got, c.want)
		}
	}
}

// Only a killed process counts as killed, not one that ended before.
func TestDiedOf(t *testing.T) {
	t.Parallel()
	for script, want := range map[string]bool{"kill -9 $$": true, "kill -6 $$": false, "exit 2": false, "exit 0": false} {
		err := exec.Command("sh", "-c", script).Run()
		check.Equal(t, script, diedOf(err, syscall.SIGKILL), want)
	}
	check.Equal(t, "an error of another kind is a death", diedOf(fmt.Errorf("reading"), syscall.SIGKILL), false)
}
