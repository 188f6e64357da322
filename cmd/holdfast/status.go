package main

import (
	"errors"
	"regexp"
	"slices"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
)

// Exit statuses of holdfast itself. Those from 64 to 77 are those of sysexits.h. The status of a
// command is passed on, as 128+n if signal n ended it. check has 1 for a problem and 2 for a
// warning, conformance 1 for a failed case.
const (
	statusFree        = 1   // who, release: nobody holds the lock
	statusUsage       = 64  // EX_USAGE: the arguments are wrong
	statusUnreachable = 69  // EX_UNAVAILABLE: the server, or a quorum of the servers, did not answer
	statusFailed      = 70  // EX_SOFTWARE: any other failure, such as a key of another type
	statusHeld        = 75  // EX_TEMPFAIL: another holds the lock
	statusDenied      = 77  // EX_NOPERM: the server refused the password, or a command
	statusLost        = 79  // the lock was lost while the command ran
	statusCannotRun   = 126 // the command could not be started
	statusNotFound    = 127 // the command was not found
	statusSignal      = 128 // and the number of the signal
	statusInterrupted = 256 // no status: Ctrl-C ended the command, and holdfast dies of SIGINT too
)

// statusError is an error with its exit status. Without err nothing is printed.
type statusError struct {
	status int
	err    error
}

func (e *statusError) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

func (e *statusError) Unwrap() error { return e.err }

// statusOnly returns an error with a status and no text, or nil for status 0.
func statusOnly(status int) error {
	if status == 0 {
		return nil
	}
	return &statusError{status: status}
}

// withStatus gives err the exit status of an operation on a lock.
func withStatus(err error) error {
	if err == nil {
		return nil
	}
	return &statusError{operationStatus(err), err}
}

// operationStatus returns the exit status for the error of an operation on a lock.
func operationStatus(err error) int {
	var status *statusError
	switch code := driver.CodeOf(err); {
	case errors.As(err, &status):
		return status.status
	case errors.Is(err, locker.ErrNotAcquired):
		return statusHeld
	case code == "NOPERM" || refusedLogin(err):
		return statusDenied
	case errors.Is(err, locker.ErrInvalid), errors.Is(err, errors.ErrUnsupported):
		return statusUsage
	case errors.Is(err, locker.ErrUnknownOutcome), errors.Is(err, locker.ErrMaxWait), driver.Transient(err):
		return statusUnreachable
	default:
		return statusFailed
	}
}

// refusedLogin reports whether the server refused the login. Clients return a refusal as an error
// of the connection, not always as a [driver.ServerError].
func refusedLogin(err error) bool {
	code := driver.CodeOf(err)
	return code == "NOAUTH" || code == "WRONGPASS" || innermost(err, loginRefusal.MatchString)
}

// loginRefusal matches the reply to a client without a login, or with a wrong one. A server does
// not read long commands before the login. The pools of redigo for a Cluster and for Sentinels put
// the reply into a text of their own.
var loginRefusal = regexp.MustCompile(`^(?s:redi(?:go|sc): .*)?(?:ERR )?(?:NOAUTH |WRONGPASS |Protocol error: unauthenticated)`)

// innermost reports whether matches returns true for the text of an innermost error of err: of a
// reply, or of an error that wraps no other. The texts around it have the lock's name.
func innermost(err error, matches func(text string) bool) bool {
	switch e := err.(type) { //nolint:errorlint // it walks the tree
	case *driver.ServerError:
		return matches(e.Text)
	case interface{ Unwrap() []error }:
		return slices.ContainsFunc(e.Unwrap(), func(part error) bool { return innermost(part, matches) })
	case interface{ Unwrap() error }:
		if inner := e.Unwrap(); inner != nil {
			return innermost(inner, matches)
		}
	}
	return matches(err.Error())
}

// statusOf returns the exit status for the error of the command line. An error without a status is
// one of the arguments.
func statusOf(err error) int {
	var status *statusError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &status):
		return status.status
	default:
		return statusUsage
	}
}
