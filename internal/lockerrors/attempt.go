package lockerrors

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/holdfast-go/holdfast/locker/driver"
)

// AttemptError reports an acquire or a resume without a deciding answer: the server could not be
// reached, did not answer in time, or was not ready (LOADING, say). It matches ErrUnknownOutcome if
// the lock may have been acquired all the same.
type AttemptError struct {
	// Server is the server's address; several, separated by commas, if the one that was asked is
	// unknown; empty if the client does not report it.
	Server string
	// Took is the time from the first send to the error.
	Took time.Duration
	// Err is the error of the last send.
	Err error
}

// NewAttemptError returns an AttemptError for err. Its Server is the address of a network error in
// err, or else server.
func NewAttemptError(server string, took time.Duration, err error) *AttemptError {
	return &AttemptError{Server: cmp.Or(addressIn(err), server), Took: took, Err: err}
}

// addressIn returns the address of a network error in err, or "". It skips the cause of a context:
// that is of another call.
func addressIn(err error) string {
	switch e := err.(type) { //nolint:errorlint // it walks the tree
	case *endedError:
		return ""
	case *net.OpError:
		if e.Addr != nil {
			return e.Addr.String()
		}
	case interface{ Unwrap() error }:
		return addressIn(e.Unwrap())
	case interface{ Unwrap() []error }:
		for _, part := range e.Unwrap() {
			if address := addressIn(part); address != "" {
				return address
			}
		}
	}
	return ""
}

// Error implements error.
func (e *AttemptError) Error() string { return e.Text(e.Took, "", errors.Is(e.Err, ErrUnknownOutcome)) }

// Text returns the error text for middleware that made several attempts: took is how long they took
// in all, remarks follows it, and unknown says whether the outcome is unknown.
func (e *AttemptError) Text(took time.Duration, remarks string, unknown bool) string {
	cause := e.Cause()
	var b strings.Builder
	if b.WriteString("no answer from "); driver.CodeOf(cause) != "" {
		b.Reset()
		b.WriteString("no lock from ")
	}
	if e.Server == "" {
		b.WriteString("the server")
	} else {
		b.WriteString(e.Server)
	}
	fmt.Fprintf(&b, " in %v%s", took.Round(time.Millisecond), remarks)
	if unknown {
		b.WriteString(", the outcome is unknown")
	}
	if cause != nil {
		b.WriteString(": " + cause.Error())
	}
	return b.String()
}

// Unwrap returns Err.
func (e *AttemptError) Unwrap() error { return e.Err }

// Cause returns the innermost informative error, such as "connection refused" or the server's error
// reply. It is nil if time ran out and nothing else is known.
func (e *AttemptError) Cause() error { return causeOf(e.Err) }

func causeOf(err error) error {
	switch e := err.(type) { //nolint:errorlint // it walks the tree
	case nil:
		return nil
	case *driver.ServerError:
		return e
	case syscall.Errno:
		return e
	case *endedError:
		if e.cause == ErrMaxWait { //nolint:errorlint // itself; see ContextErr
			return nil
		}
		return e.cause
	case interface{ Unwrap() error }:
		if inner := e.Unwrap(); inner != nil {
			return causeOf(inner)
		}
	case interface{ Unwrap() []error }:
		for _, part := range e.Unwrap() {
			if cause := causeOf(part); cause != nil {
				return cause
			}
		}
		return nil
	case interface{ Timeout() bool }:
		if e.Timeout() {
			return nil
		}
	}
	if slices.Contains([]error{ErrUnknownOutcome, ErrMaxWait, driver.ErrNotSent, context.Canceled, net.ErrClosed},
		err) {
		return nil
	}
	return err
}
