package adapter

import (
	"context"
	"time"
)

// Client is how an adapter sends to one server.
type Client struct {
	// Connections is how many flights may be under way at once, each over a connection of its own; at
	// least two. One in eight, but at least one, is for urgent calls ([driver.Urgent]).
	Connections int
	// Single says that Send gets one command at a time.
	Single bool
	// Waits says that Send also sends the WAIT behind a command that has one. If not, EvalAcked of
	// [Driver] returns errors.ErrUnsupported.
	Waits bool
	// Send sends commands in one round trip. It calls [Command.Begin] of each right before that is
	// written, and [Command.Answer] of each that began. Once ctx has ended, it waits for a connection
	// no longer, and once ctx's deadline has passed, for replies neither. It does not keep the slice.
	Send func(ctx context.Context, commands []*Command)
	// Inline reports whether a single command may be sent in its caller's goroutine, since that returns
	// soon after ctx ends. Nil: no.
	Inline func(ctx context.Context) bool
	// SendInline is Send for such a command. Nil: Send serves for both.
	SendInline func(ctx context.Context, c *Command)
	// Unsent returns err, the error of a command that was not sent before its caller's ctx ended, with
	// what the client knows of failures since the time began, such as of a dial. Nil: nothing.
	Unsent func(err error, began time.Time) error
	// Left is told that a caller left before the answer to its command. ctx is what Send got with that.
	// Nil: it need not know.
	Left func(ctx context.Context)
}
