// Package argument makes the errors of forbidden arguments.
package argument

import "github.com/holdfast-go/holdfast/locker/driver"

// Invalid returns a [*driver.InvalidError].
func Invalid(what, got, allowed string) error {
	return &driver.InvalidError{What: what, Got: got, Allowed: allowed}
}

// NilContext returns a [*driver.InvalidError] for the argument what, a nil context.
func NilContext(what string) error {
	return Invalid(what, "nil", "a context; context.Background() where there is none")
}
