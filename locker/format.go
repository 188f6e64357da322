package locker

import (
	"fmt"
	"io"
	"log/slog"
)

// Format is Lock.Format.
func (l *lockState) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, l.String()) }

// String is Lock.String.
func (l *lockState) String() string {
	if !l.valid() {
		return "lock (not held)"
	}
	state := "held"
	if err := l.peek(); err != nil {
		state = textOf(err)
	}
	return "lock " + l.facts().String() + " (" + state + ")"
}

// LogValue is Lock.LogValue.
func (l *lockState) LogValue() slog.Value {
	if !l.valid() {
		return slog.GroupValue(slog.Bool("held", false))
	}
	return slog.GroupValue(append(l.facts().LogValue().Group(), slog.Bool("held", l.peek() == nil))...)
}

// Format implements fmt.Formatter for every verb, without the token.
func (h Handle) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, h.String()) }

// String describes the hold, without the token. Encode is for passing it on.
func (h Handle) String() string {
	if h.IsZero() {
		return "handle (zero)"
	}
	return "handle " + h.facts.String()
}

// LogValue implements slog.LogValuer, without the token.
func (h Handle) LogValue() slog.Value { return h.facts.LogValue() }
