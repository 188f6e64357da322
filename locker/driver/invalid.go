package driver

import "errors"

// ErrInvalid matches every [InvalidError].
var ErrInvalid = errors.New("invalid argument")

// InvalidError says what is wrong with an argument, where, and what is allowed.
type InvalidError struct {
	// What names the argument: "Request.TTL", "goredis.New client".
	What string
	// Got shows the value, shortened where it is long.
	Got string
	// Allowed says what would be right.
	Allowed string
}

// Error implements error.
func (e *InvalidError) Error() string {
	return "invalid " + e.What + ": " + e.Got + "; allowed: " + e.Allowed
}

// Is matches ErrInvalid.
func (e *InvalidError) Is(target error) bool { return target == ErrInvalid }

// Invalid is short for an *InvalidError.
func Invalid(what, got, allowed string) error {
	return &InvalidError{What: what, Got: got, Allowed: allowed}
}
