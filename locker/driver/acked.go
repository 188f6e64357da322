package driver

import (
	"context"
	"errors"
	"strings"
	"time"
)

// Acknowledger is implemented by drivers that can report how many replicas have what a script
// wrote.
type Acknowledger interface {
	// EvalAcked is Eval followed by WAIT (https://redis.io/docs/latest/commands/wait/) on the same
	// connection and in the same round trip. It executes the script at most once. It returns as
	// soon as replicas replicas have acknowledged the script's writes, or timeout has passed; acked
	// is how many have. replicas is at least one. timeout is in whole milliseconds, at least one.
	//
	// WAIT covers only the writes of its own connection. If the script wrote nothing, acked says
	// nothing about an earlier write on another connection.
	//
	// The error is Eval's or, if the script was answered and WAIT was not, a [*WaitError]. If the
	// client does not report the script's reply in that case, the script's outcome is unknown.
	EvalAcked(
		ctx context.Context, s *Script, keys, args []string, replicas int, timeout time.Duration,
	) (reply Reply, acked int, err error)
}

// WaitError is the error of a WAIT whose script was executed. It is not known which replicas have
// the script's writes.
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

// WaitRefused reports whether err is a [*WaitError] that every later WAIT would end with too: the
// server does not know the command, or does not allow it to this user.
func WaitRefused(err error) bool {
	e, ok := errors.AsType[*WaitError](err)
	return ok && e.refused()
}
