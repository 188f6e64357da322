package driver

import (
	"context"
	"errors"
	"strings"
	"time"
)

// Acknowledger is implemented by drivers that can tell how many replicas have what a script wrote.
type Acknowledger interface {
	// EvalAcked is Eval with WAIT replicas timeout (https://redis.io/docs/latest/commands/wait/) right behind the script, on the
	// same connection and in the same round trip. It executes the script at most once, and returns how many replicas had
	// acknowledged its writes when as many as asked for had, or timeout had passed. timeout is in whole milliseconds, at least
	// one; 0 would be for ever. replicas is at least one.
	//
	// WAIT speaks for the writes of its connection: of what another one wrote, by a send whose reply was lost, acked proves
	// nothing where this script wrote nothing.
	//
	// An error is Eval's, or, where the script was answered and WAIT was not, a *[WaitError]. A client that then tells nothing of
	// the script leaves it open as Eval does.
	EvalAcked(ctx context.Context, s *Script, keys, args []string, replicas int, timeout time.Duration) (reply Reply, acked int, err error)
}

// WaitError is the error of WAIT behind a script that was executed: nobody knows who else has what it wrote.
type WaitError struct{ Err error }

// Error implements error.
func (e *WaitError) Error() string {
	return "the script was executed, but not the WAIT behind it: " + e.Err.Error()
}

// Unwrap returns Err.
func (e *WaitError) Unwrap() error { return e.Err }

// refused tells whether the server would refuse every other WAIT too: it does not know it, or not from this user.
func (e *WaitError) refused() bool {
	se, ok := errors.AsType[*ServerError](e.Err)
	return ok && (se.Code() == "NOPERM" || strings.HasPrefix(se.Text, "ERR unknown command"))
}

// WaitRefused tells whether err is that of a WAIT that the server will go on refusing.
func WaitRefused(err error) bool {
	e, ok := errors.AsType[*WaitError](err)
	return ok && e.refused()
}
