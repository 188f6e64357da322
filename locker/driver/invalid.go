package driver

import "errors"

// ErrInvalid matches every [InvalidError].
var ErrInvalid = errors.New("invalid argument")

// InvalidError reports a forbidden argument. It matches [ErrInvalid].
type InvalidError struct {
	// What names the argument: "Request.TTL", "goredis.New client".
	What string
	// Got shows the value, shortened if it is long.
	Got string
	// Allowed describes the allowed values.
	Allowed string
}

// Error implements error.
func (e *InvalidError) Error() string {
	return "invalid " + e.What + ": " + e.Got + "; allowed: " + e.Allowed
}

// Is reports whether target is ErrInvalid.
func (e *InvalidError) Is(target error) bool { return target == ErrInvalid }
