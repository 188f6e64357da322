package adapter

// EventKind says what an [Event] reports.
type EventKind uint8

// The kinds of events of a Feed.
const (
	Subscribed   EventKind = iota + 1 // the server answered SUBSCRIBE: it confirmed it, or refused it with Err
	Message                           // a message arrived on Channel
	Unsubscribed                      // the server answered UNSUBSCRIBE: it confirmed it, or refused it with Err
	Refused                           // the server refused, with Err, the oldest unanswered command
)

// Event is an answer or a message that a subscriber connection received.
//
// A Feed that knows which command an error reply answers reports it as Subscribed or Unsubscribed
// with an Err. A Feed whose client does not know reports Refused; such a Feed must also report
// every Unsubscribed.
type Event struct {
	Kind    EventKind
	Channel string // "" for Refused
	Err     error  // a *ServerError: the refusal of a command; the connection goes on
}

// Feed is one connection in subscriber state, as an adapter supplies it to a [Hub]. Subscribe and Unsubscribe send their
// command and do not wait for its confirmation; the Hub calls them from one goroutine at a time, but while Next
// blocks. After an error of theirs it closes the feed.
type Feed interface {
	Subscribe(channel string) error
	Unsubscribe(channel string) error
	// Next blocks until the next event. After an error the Hub closes the feed and opens another.
	// An error reply is an Event, unless the client ends the connection because of it; then Next
	// returns it as an error, a *ServerError. If Close ended the feed, the error matches
	// net.ErrClosed, io.ErrClosedPipe or context.Canceled, and the Hub reports why it closed it.
	Next() (Event, error)
	// Close closes the connection and makes a blocked Next, Subscribe or Unsubscribe return. It may be called more than
	// once, and by several goroutines.
	Close() error
}
