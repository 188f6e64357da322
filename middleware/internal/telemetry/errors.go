package telemetry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
)

// sentinels are the errors with a name as their type, the more specific ones first.
var sentinels = []struct {
	err  error
	name string
}{
	{locker.ErrNested, "nested"},
	{locker.ErrForgotten, "forgotten"},
	{locker.ErrLost, "lost"},
	{locker.ErrUnknownOutcome, "unknown_outcome"},
	{locker.ErrNotReplicated, "not_replicated"},
	{locker.ErrClosed, "closed"},
	{locker.ErrInvalid, "invalid_argument"},
	{errors.ErrUnsupported, "unsupported"},
	{locker.ErrNotHeld, "not_held"},
	{context.DeadlineExceeded, "timeout"},
	{context.Canceled, "canceled"},
	{io.EOF, "eof"},
	{io.ErrUnexpectedEOF, "eof"},
	{net.ErrClosed, "connection_closed"},
	{ErrNoReturn, "panic"},
}

// ErrorType is the value of error.type: the code of a server error ("LOADING"), the name of a known
// error ("unknown_outcome", "timeout"), the failed step of a connection ("net_dial"), or the type
// of the innermost error.
func ErrorType(err error) string {
	if code := driver.CodeOf(err); code != "" && !errors.Is(err, locker.ErrLost) &&
		!errors.Is(err, locker.ErrUnknownOutcome) {
		return code
	}
	for _, s := range sentinels {
		if errors.Is(err, s.err) {
			return s.name
		}
	}
	if op, ok := errors.AsType[*net.OpError](err); ok {
		if op.Timeout() {
			return "timeout"
		}
		return "net_" + op.Op
	}
	return fmt.Sprintf("%T", innermost(err))
}

// innermost follows Unwrap to its end, by the first branch at each fork.
func innermost(err error) error {
	for {
		var next error
		switch e := err.(type) { //nolint:errorlint // it walks the chain
		case interface{ Unwrap() error }:
			next = e.Unwrap()
		case interface{ Unwrap() []error }:
			if all := e.Unwrap(); len(all) > 0 {
				next = all[0]
			}
		}
		if next == nil {
			return err
		}
		err = next
	}
}

// Refusals are all the refusals in err's tree: a quorum's error may have several. Those of an outage are
// in its text alone: errors.As does not find them.
func Refusals(err error) []*locker.ContentionError {
	switch e := err.(type) { //nolint:errorlint // it walks the tree
	case *locker.ContentionError:
		return []*locker.ContentionError{e}
	case interface {
		Refusals() []*locker.ContentionError // its text has other refusals than it wraps
	}:
		return e.Refusals()
	case interface{ Unwrap() error }:
		return Refusals(e.Unwrap())
	case interface{ Unwrap() []error }:
		var all []*locker.ContentionError
		for _, part := range e.Unwrap() {
			all = append(all, Refusals(part)...)
		}
		return all
	default:
		return nil
	}
}

// Holder returns the first refusal in err, without the trace context in the note and, unless owners
// is set, without the owner. nil: err has none.
func Holder(err error, owners bool) *locker.ContentionError {
	raw, ok := errors.AsType[*locker.ContentionError](err)
	if !ok {
		return nil
	}
	return Shown(raw, owners)
}

// Shown is raw as Holder returns it.
func Shown(raw *locker.ContentionError, owners bool) *locker.ContentionError {
	held := *raw
	held.Note, _ = SplitNote(held.Note)
	if !owners {
		held.Owner = ""
	}
	return &held
}

// Printable is s for attributes: a name or a note may be of any bytes, but a single attribute of
// invalid UTF-8 keeps OTLP from sending the whole batch, and Prometheus from reading the whole
// page.
func Printable(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// Text is err's text, Printable, with each refusal in it as Shown.
func Text(err error, owners bool) string {
	text := err.Error()
	for _, raw := range Refusals(err) {
		text = strings.ReplaceAll(text, raw.Error(), Shown(raw, owners).Error())
	}
	return Printable(text)
}
