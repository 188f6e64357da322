package locker

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/internal/lockerrors"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/internal/text"
	"github.com/holdfast-go/holdfast/locker/lease"
)

// The errors to test for with errors.Is.
var (
	// ErrNotAcquired: the last answer was "held by another", or another request of this process was
	// ahead in the queue of middleware/retry. An outage is not contention. A wait that ends during
	// a further attempt matches it too; the caller holds nothing.
	ErrNotAcquired = lockerrors.ErrNotAcquired
	// ErrNested: the ctx of the acquire carries a hold of the lock (Lock.Context, Do), so the call
	// chain would wait for itself. The error is a [ContentionError] with Nested set, and matches
	// ErrNotAcquired and driver.ErrPermanent. strategies/reentrant re-enters instead.
	ErrNested = errors.New("lock is held by this call chain")
	// ErrMaxWait: Request.MaxWait passed.
	ErrMaxWait = lockerrors.ErrMaxWait
	// ErrNotHeld: there is no such hold, or it has ended.
	ErrNotHeld = lockerrors.ErrNotHeld
	// ErrLost: the hold ended without being released. It matches ErrNotHeld. A *LostError says how.
	ErrLost error = &notHeldError{"lock was lost"}
	// ErrForgotten: the program dropped the Lock without releasing it, so it was no longer renewed.
	// It is the cause of an ErrLost; see [Lock].
	ErrForgotten = errors.New("the Lock was garbage-collected without a Release")
	// ErrReleased: the hold was released. It matches ErrNotHeld.
	ErrReleased error = &notHeldError{"lock was released"}
	// ErrUnknownOutcome: no reply came, and the outcome could not be found out.
	ErrUnknownOutcome = lockerrors.ErrUnknownOutcome
	// ErrInvalid matches every *InvalidError.
	ErrInvalid = driver.ErrInvalid
	// ErrClosed: the driver was closed.
	ErrClosed = driver.ErrClosed
)

// InvalidError names an invalid argument, its value, and the allowed values.
type InvalidError = driver.InvalidError

type notHeldError struct{ text string }

func (e *notHeldError) Error() string        { return e.text }
func (e *notHeldError) Is(target error) bool { return target == ErrNotHeld }

// LostError is the error of a lock that ended without a release. Lock.Err returns it, and it is the
// argument of AfterDone callbacks and the cause of Lock.Context. It matches ErrLost, ErrNotHeld and
// Err.
type LostError struct {
	// Name is the lock's name.
	Name string
	// Reason says how the lock ended, for people. It is empty if Err says everything.
	Reason string
	// Err is the cause of the loss, such as the error of the last renewal, or nil.
	Err error
}

// Error implements error.
func (e *LostError) Error() string {
	return "holdfast: lock " + text.Quote(e.Name) + strings.TrimPrefix(e.text(), "lock")
}

// Unwrap returns Err.
func (e *LostError) Unwrap() error { return e.Err }

// Is matches ErrLost and ErrNotHeld.
func (e *LostError) Is(target error) bool { return target == ErrLost || target == ErrNotHeld }

// text returns the error text without the lock's name.
func (e *LostError) text() string {
	parts := []string{ErrLost.Error()}
	for _, part := range [...]string{e.Reason, detail(e.Err)} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, ": ")
}

// detail returns err's text without "lock was lost".
func detail(err error) string {
	if err == nil || err == ErrLost || err == ErrNotHeld { //nolint:errorlint // these alone say nothing more
		return ""
	}
	return strings.TrimPrefix(err.Error(), ErrLost.Error()+": ")
}

// lost returns the LostError with that cause, which may be nil. If cause is a LostError, as of the
// Lock behind this one, lost returns cause.
func (l *lockState) lost(reason string, cause error) error {
	if known, ok := cause.(*LostError); ok { //nolint:errorlint // itself, as Lock.Err returns it
		return known
	}
	return &LostError{Name: l.info().Name, Reason: reason, Err: cause}
}

// expired returns the error of a lock past its Deadline. The mutex is held.
func (l *lockState) expired() error {
	if l.cause != nil {
		return l.lost("its Deadline passed", l.cause)
	}
	var known error
	if e, ok := lease.Find[interface{ Loss() error }](l.hidden.Load().lease); ok {
		known = e.Loss()
	}
	return l.lost("its Deadline passed before it was renewed", known)
}

// gone returns the error of a lock that was gone at an operation with the error err.
func (l *lockState) gone(operation string, err error) error {
	switch {
	case detail(err) != "":
		return l.lost("it was gone at the "+operation, err)
	case l.handleTaken.Load():
		return l.lost("its key was gone at the "+operation+
			" (ended by Break, deleted, expired, taken over by a resume, or the server lost its data)", err)
	default:
		return l.lost("its key was gone at the "+operation+
			" (ended by Break, deleted, expired, or the server lost its data)", err)
	}
}

// OpError wraps every error of an operation on a lock, once. errors.As finds the client's own error
// in it.
type OpError struct {
	// Op is "acquire", "resume", "renew", "release", "upgrade", "downgrade", "inspect",
	// "break", "watch" or "note".
	Op string
	// Name is the lock's name.
	Name string
	// Err is the error of the operation.
	Err error
}

// Error implements error.
func (e *OpError) Error() string {
	return "holdfast: " + e.Op + " " + text.Quote(e.Name) + ": " + textOf(e.Err)
}

// textOf returns err's text for use in an OpError, which names the lock itself.
func textOf(err error) string {
	if e, ok := err.(*LostError); ok { //nolint:errorlint // a wrapper has a text of its own
		return e.text()
	}
	return err.Error()
}

// Unwrap returns Err.
func (e *OpError) Unwrap() error { return e.Err }

// Is reports whether target is an internal error of package lease. Use errors.As to find an
// OpError.
func (e *OpError) Is(target error) bool { return target == lockerrors.ErrOperation }

// opError wraps err unless it is nil or wrapped already.
func opError(op, name string, err error) error {
	if _, wrapped := errors.AsType[*OpError](err); err == nil || wrapped {
		return err
	}
	return &OpError{Op: op, Name: name, Err: err}
}

// ContentionError describes the holder of the lock. It matches ErrNotAcquired, and ErrNested if
// Nested is set.
type ContentionError struct {
	// Name is the lock's name.
	Name string
	// Owner and Note are the holder's. They are empty unless the stored value has exactly our form.
	Owner, Note string
	// Left is the time until the holder's lease ends unless it is renewed. Zero: unknown.
	Left time.Duration
	// Released: the holder has released the lock, and its Request.MinHold keeps the name taken for
	// Left. No wake-up is published at the end of MinHold.
	Released bool
	// Nested: the caller's own call chain holds the lock, and the error matches [ErrNested].
	// middleware/retry sets it.
	Nested bool
	// Hint is for middleware/retry.
	lease.Hint
}

// Error implements error.
func (e *ContentionError) Error() string {
	var b strings.Builder
	if e.Nested {
		b.WriteString(ErrNested.Error())
	} else {
		b.WriteString(ErrNotAcquired.Error())
	}
	if e.Owner != "" {
		fmt.Fprintf(&b, ", owner %s", text.Quote(e.Owner))
	}
	if e.Note != "" {
		fmt.Fprintf(&b, ", note %s", text.Quote(e.Note))
	}
	switch {
	case e.Left <= 0:
	case e.Released:
		fmt.Fprintf(&b, ", who released it; its MinHold lasts for another %v", e.Left)
	default:
		fmt.Fprintf(&b, ", for %v at most unless renewed", e.Left)
	}
	if e.Nested {
		b.WriteString(": its ctx carries the hold; strategies/reentrant re-enters")
	}
	return b.String()
}

// Is matches ErrNotAcquired. If Nested is set, it matches ErrNested and driver.ErrPermanent too.
func (e *ContentionError) Is(target error) bool {
	return target == ErrNotAcquired || e.Nested && (target == ErrNested || target == driver.ErrPermanent)
}

// ErrNotReplicated matches every [ReplicaError].
var ErrNotReplicated = lockerrors.ErrNotReplicated

// ReplicaError reports that a server executed an operation, but too few of its replicas
// acknowledged it in time: a failover could undo it. It matches ErrNotReplicated. Such an acquire
// is undone; after such a renewal the lock is held until its old Deadline.
type ReplicaError struct {
	// Acked replicas acknowledged it, Wanted were asked for.
	Acked, Wanted int
	// Within is the time they had.
	Within time.Duration
}

// Error implements error.
func (e *ReplicaError) Error() string {
	return fmt.Sprintf("%v: %d of %d within %v", ErrNotReplicated, e.Acked, e.Wanted, e.Within)
}

// Is matches ErrNotReplicated.
func (e *ReplicaError) Is(target error) bool { return target == ErrNotReplicated }
