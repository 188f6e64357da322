package adapter

import (
	"errors"
	"net"
	"strings"

	"github.com/holdfast-go/holdfast/locker/driver"
)

// DialFailed tells whether err says that no connection came about, so that nothing can have been sent on it.
func DialFailed(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "dial"
}

// NewServerError returns a [driver.ServerError] with the text of an error reply. It restores an "ERR " that
// the client stripped (rueidis does). It removes the command's arguments if the server repeated
// them; see [WithoutArguments]. If err's text has arguments too, Err is a plain error with the
// shortened text. An adapter that wants to keep the client's error type passes an error of that
// type without the arguments.
func NewServerError(text string, err error) *driver.ServerError {
	text, _ = WithoutArguments(text)
	if code, _, _ := strings.Cut(text, " "); !isCode(code) {
		text = "ERR " + text
	}
	if err != nil {
		if short, cut := WithoutArguments(err.Error()); cut {
			err = errors.New(short)
		}
	}
	return &driver.ServerError{Text: text, Err: err}
}

// WithoutArguments removes the arguments that a server repeats when it does not know a command
// ("unknown command 'EVALSHA', with args beginning with: ..."), and reports whether it removed any.
func WithoutArguments(text string) (short string, cut bool) {
	short, _, cut = strings.Cut(text, ", with args beginning with:")
	return short, cut
}

func isCode(s string) bool {
	for _, c := range s {
		if (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '_' {
			return false
		}
	}
	return s != ""
}
