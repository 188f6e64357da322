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
	// Single makes Send get one command at a time.
	Single bool
	// Waits is set if Send also sends the WAIT behind a command. If not, EvalAcked of [Driver]
	// returns errors.ErrUnsupported.
	Waits bool
	// Send sends commands in one round trip. It calls [Command.Begin] right before it writes a
	// command, and [Command.Answer] of each that began. Once ctx has ended, it waits for no
	// connection, and once ctx's deadline has passed, for no reply. It does not keep the slice.
	Send func(ctx context.Context, commands []*Command)
	// Inline reports whether a single command may be sent in its caller's goroutine, since it returns
	// soon after ctx ends. Nil: no.
	Inline func(ctx context.Context) bool
	// SendInline is Send for such a command. Nil: Send serves for both.
	SendInline func(ctx context.Context, c *Command)
	// Unsent adds the client's failures since began, such as a failed dial, to err, the error of a
	// command not sent before its caller's ctx ended. Nil: none are known.
	Unsent func(err error, began time.Time) error
	// Left is called when a caller leaves before the answer to its command. ctx is that of its Send.
	// Nil: nothing is called.
	Left func(ctx context.Context)
}
