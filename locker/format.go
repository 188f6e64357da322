package locker

import (
	"fmt"
	"io"
	"log/slog"
	"strconv"
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
	return "lock " + describe(l.facts()) + " (" + state + ")"
}

// LogValue implements slog.LogValuer, without the token.
func (l *Lock) LogValue() slog.Value {
	if !l.valid() {
		return slog.GroupValue(slog.Bool("held", false))
	}
	return slog.GroupValue(append(attrs(l.facts()), slog.Bool("held", l.peek() == nil))...)
}

// Format implements fmt.Formatter for every verb, without the token.
func (h Handle) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, h.String()) }

// String describes the hold, without the token. Encode is for passing it on.
func (h Handle) String() string {
	if h.IsZero() {
		return "handle (zero)"
	}
	return "handle " + describe(h.facts)
}

// LogValue implements slog.LogValuer, without the token.
func (h Handle) LogValue() slog.Value { return slog.GroupValue(attrs(h.facts)...) }

// Format implements fmt.Formatter for every verb, without the token.
func (g Grant) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, "grant "+describe(g)) }

// LogValue implements slog.LogValuer, without the token.
func (g Grant) LogValue() slog.Value { return slog.GroupValue(attrs(g)...) }

func describe(g Grant) string {
	s := quote(g.Name) + " " + g.Mode.String() + " owner " + quote(g.Owner)
	if g.Fence != 0 {
		s += " fence " + strconv.FormatInt(g.Fence, 10)
	}
	return s
}

func attrs(g Grant) []slog.Attr {
	return []slog.Attr{
		slog.String("name", g.Name), slog.String("mode", g.Mode.String()), slog.String("owner", g.Owner), slog.Int64("fence", g.Fence),
	}
}
