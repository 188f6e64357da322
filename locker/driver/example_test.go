package driver_test

import (
	"errors"
	"fmt"

	"github.com/holdfast-go/holdfast/locker/driver"
)

// A strategy decides by the class of an error whether a command may have been executed.
func ExampleNotExecuted() {
	for _, err := range []error{
		&driver.ServerError{Text: "READONLY You can't write against a read only replica."},
		&driver.ServerError{Text: "ERR something else"},
		driver.NotSent(errors.New("connection refused")),
		errors.New("EOF"),
	} {
		fmt.Println(driver.NotExecuted(err), err)
	}
	// Output:
	// true server error: READONLY You can't write against a read only replica.
	// false server error: ERR something else
	// true command was not sent: connection refused
	// false EOF
}
