// Package lockerrors has errors of package locker for packages that locker imports, and errors that
// strategies and middleware make.
package lockerrors

import "errors"

// These are the errors of the same names in package locker.
var (
	ErrNotAcquired    = errors.New("lock is held by another")
	ErrMaxWait        = errors.New("MaxWait passed")
	ErrNotHeld        = errors.New("lock is not held")
	ErrUnknownOutcome = errors.New("outcome is unknown")
	ErrNotReplicated  = errors.New("too few replicas acknowledged it")
)

// ErrOperation matches every *locker.OpError.
var ErrOperation = errors.New("an operation on a lock failed")
