package driver

import (
	"errors"
	"strings"
)

// WaitError is the error of a WAIT after an executed script. The replicas with the script's writes
// are not known.
type WaitError struct {
	Err error // why WAIT failed
}

// Error implements error.
func (e *WaitError) Error() string {
	return "the script was executed, but the WAIT after it failed: " + e.Err.Error()
}

// Unwrap returns Err.
func (e *WaitError) Unwrap() error { return e.Err }

// refused reports whether the server would refuse any other WAIT too: it does not know the command,
// or does not allow it to this user.
func (e *WaitError) refused() bool {
	se, ok := errors.AsType[*ServerError](e.Err)
	return ok && (se.Code() == "NOPERM" || strings.HasPrefix(se.Text, "ERR unknown command"))
}

// WaitRefused reports whether every later WAIT would end with err too, a [*WaitError]: the server
// does not know the command, or does not allow it to this user.
func WaitRefused(err error) bool {
	e, ok := errors.AsType[*WaitError](err)
	return ok && e.refused()
}
