package locker

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/locker/driver"
)

// The errors to test for with errors.Is.
var (
	// ErrNotAcquired: the last answer was "held by another", and nothing else. An outage is not contention. A wait that
	// is given up while one more attempt is under way matches it too: the caller holds nothing.
	ErrNotAcquired = errors.New("lock is held by another")
	// ErrMaxWait: Request.MaxWait passed.
	ErrMaxWait = errors.New("MaxWait passed")
	// ErrNotHeld: there is no such hold, or no more.
	ErrNotHeld = errors.New("lock is not held")
	// ErrLost: the hold ended without being released. It matches ErrNotHeld.
	ErrLost error = &notHeldError{"lock was lost"}
	// ErrReleased: the hold was released. It matches ErrNotHeld.
	ErrReleased error = &notHeldError{"lock was released"}
	// ErrUnknownOutcome: the answer did not come and could not be found out.
	ErrUnknownOutcome = errors.New("outcome is unknown")
	// ErrInvalid matches every *InvalidError.
	ErrInvalid = driver.ErrInvalid
	// ErrClosed: the driver was closed.
	ErrClosed = driver.ErrClosed
)

// InvalidError says what is wrong with an argument, where, and what is allowed.
type InvalidError = driver.InvalidError

type notHeldError struct{ text string }

func (e *notHeldError) Error() string        { return e.text }
func (e *notHeldError) Is(target error) bool { return target == ErrNotHeld }

// lostError is ErrLost with what brought it about.
type lostError struct{ cause error }

func (e *lostError) Error() string        { return ErrLost.Error() + ": " + e.cause.Error() }
func (e *lostError) Unwrap() error        { return e.cause }
func (e *lostError) Is(target error) bool { return target == ErrLost || target == ErrNotHeld }

// lost makes an error that matches ErrLost of cause.
func lost(cause error) error {
	switch {
	case cause == nil:
		return ErrLost
	case errors.Is(cause, ErrLost):
		return cause
	}
	return &lostError{cause}
}

// OpError wraps every error of an operation on a lock, once. The client's own error is reachable by errors.As.
type OpError struct {
	// Op is "acquire", "resume", "renew", "release", "upgrade", "downgrade" or "inspect".
	Op string
	// Name is the lock's name.
	Name string
	Err  error
}

// Error implements error.
func (e *OpError) Error() string {
	return "holdfast: " + e.Op + " " + quote(e.Name) + ": " + e.Err.Error()
}

// Unwrap returns Err.
func (e *OpError) Unwrap() error { return e.Err }

// opError wraps err unless it is nil or wrapped already.
func opError(op, name string, err error) error {
	if _, wrapped := errors.AsType[*OpError](err); err == nil || wrapped {
		return err
	}
	return &OpError{Op: op, Name: name, Err: err}
}

// ContentionError says who holds the lock. It matches ErrNotAcquired.
type ContentionError struct {
	Name string
	// Owner and Note are the holder's; empty unless the value found is exactly of our form.
	Owner, Note string
	// Left is what is left of the holder's lease, unless it is renewed. Zero: unknown.
	Left time.Duration
	// RetryAfter is when to try again at the latest. It is Left, or less where a strategy asks those who wait to come back
	// sooner. Zero: unknown.
	RetryAfter time.Duration
	// Channel is where releases are heard of. Zero: poll.
	Channel driver.Channel
	// Jitter asks for a random delay of up to this before an attempt that a wake-up brings about: attempts that meet spoil
	// each other, as in a quorum. Zero: none.
	Jitter time.Duration
	// Ordered says that the strategy itself decides between shared and exclusive requests that wait, in all processes. Then
	// middleware does not let one wait for the other.
	Ordered bool
}

// Error implements error.
func (e *ContentionError) Error() string {
	var b strings.Builder
	b.WriteString(ErrNotAcquired.Error())
	if e.Owner != "" {
		fmt.Fprintf(&b, ", owner %s", quote(e.Owner))
	}
	if e.Note != "" {
		fmt.Fprintf(&b, ", note %s", quote(e.Note))
	}
	if e.Left > 0 {
		fmt.Fprintf(&b, ", for %v at most unless renewed", e.Left)
	}
	return b.String()
}

// Is matches ErrNotAcquired.
func (e *ContentionError) Is(target error) bool { return target == ErrNotAcquired }
