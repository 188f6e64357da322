package adapter

import (
	"errors"
	"net"
	"strings"

	"github.com/holdfast-go/holdfast/locker/driver"
)

// DialFailed reports whether err is of a dial: nothing was sent.
func DialFailed(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "dial"
}

// NewServerError returns a [driver.ServerError] with the text of an error reply and err, the
// client's own error or nil. It restores the code "ERR" if the client removed it, as rueidis does.
// It removes the command's arguments if the server repeated them, and replaces err by a plain error
// if its text has them.
func NewServerError(text string, err error) *driver.ServerError {
	text, _ = withoutArguments(text)
	if code, _, _ := strings.Cut(text, " "); !isCode(code) {
		text = "ERR " + text
	}
	if err != nil {
		if short, cut := withoutArguments(err.Error()); cut {
			err = errors.New(short)
		}
	}
	return &driver.ServerError{Text: text, Err: err}
}

// withoutArguments removes the arguments in the reply to an unknown command ("unknown command
// 'EVALSHA', with args beginning with: ..."), and reports whether it removed any.
func withoutArguments(text string) (short string, cut bool) {
	short, _, cut = strings.Cut(text, ", with args beginning with:")
	return short, cut
}

// isCode reports whether s can be the code of an error reply.
func isCode(s string) bool {
	for _, c := range s {
		if (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '_' {
			return false
		}
	}
	return s != ""
}
