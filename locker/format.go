package locker

import (
	"fmt"
	"io"
	"log/slog"
)

// Format implements fmt.Formatter for every verb, as String does.
func (l *Lock) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, l.String()) }

// String describes the lock: name, mode, owner, fence and state, never the token.
func (l *Lock) String() string {
	if !l.valid() {
		return "lock (not held)"
	}
	state := "held"
	if err := l.peek(); err != nil {
		state = textOf(err)
	}
	return "lock " + l.facts().String() + " (" + state + ")"
}

// LogValue implements slog.LogValuer, without the token.
func (l *Lock) LogValue() slog.Value {
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
