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

// Invalid returns an [*InvalidError].
func Invalid(what, got, allowed string) error {
	return &InvalidError{What: what, Got: got, Allowed: allowed}
}

// NilContext returns an *InvalidError for the argument what, a nil context.
func NilContext(what string) error {
	return Invalid(what, "nil", "a context; context.Background() where there is none")
}
