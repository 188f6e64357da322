package adapter

// Event is an answer or a message on a subscriber connection.
//
// If a Feed knows the command of an error reply, it reports the command's answer with an Err. If
// its client does not know, it reports an Event with an Err alone: the server refused the oldest
// unanswered command. Such a Feed must also report every "unsubscribe".
type Event struct {
	// Kind is the server's word: "subscribe", "unsubscribe" or "message", or the same of sharded
	// pub/sub with an "s" before it. A [Hub] ignores other kinds.
	Kind    string
	Channel string
	Err     error // a *ServerError: the refusal of a command; the connection goes on
}

// Feed is one subscriber connection, which an adapter supplies to a [Hub].
type Feed interface {
	// Subscribe sends SUBSCRIBE, and Unsubscribe sends UNSUBSCRIBE; neither waits for the
	// confirmation. The Hub calls them from one goroutine at a time, also while another is in Next.
	// After an error it closes the feed.
	Subscribe(channel string) error
	// Unsubscribe: see Subscribe.
	Unsubscribe(channel string) error
	// Next blocks until the next event. After an error the Hub closes the feed and opens another.
	// An error reply is an Event, unless the client ends the connection because of it; then Next
	// returns it as an error, a *ServerError. If Close ended the feed, the error matches
	// net.ErrClosed, io.ErrClosedPipe or context.Canceled, and the Hub reports why it closed it.
	Next() (Event, error)
	// Close closes the connection, and makes blocked calls of Next, Subscribe and Unsubscribe
	// return. It may be called more than once, by several goroutines.
	Close() error
}
