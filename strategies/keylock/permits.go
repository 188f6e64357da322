package keylock

import "fmt"

// LimitError reports that the semaphore has another limit than the Locker: its present holders are
// of programs with another configuration. Nothing was acquired. It is not transient.
type LimitError struct {
	// Want is the limit of the Locker, Have the one of the semaphore.
	Want, Have int
}

// Error implements error.
func (e *LimitError) Error() string {
	return fmt.Sprintf("the semaphore has a limit of %d permits, this program's is %d: "+
		"use one limit, or Config.Resize to change it", e.Have, e.Want)
}
