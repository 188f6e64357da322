package adapter

// EventKind is the kind of an [Event].
type EventKind uint8

// The kinds of events of a Feed.
const (
	Subscribed   EventKind = iota + 1 // the server answered SUBSCRIBE: it confirmed it, or refused it with Err
	Message                           // a message arrived on Channel
	Unsubscribed                      // the server answered UNSUBSCRIBE: it confirmed it, or refused it with Err
	Refused                           // the server refused, with Err, the oldest unanswered command
)

// Event is an answer or a message on a subscriber connection.
//
// If a Feed knows the command of an error reply, it reports Subscribed or Unsubscribed with an Err.
// If its client does not know, it reports Refused; such a Feed must also report every Unsubscribed.
type Event struct {
	Kind    EventKind // what was received
	Channel string    // "" for Refused
	Err     error     // a *ServerError: the refusal of a command; the connection goes on
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

// NewEvent returns the Event of a message of the server: its kind, such as "subscribe" or
// "smessage", and its channel. ok is false for a message of another kind.
func NewEvent(kind, channel string) (ev Event, ok bool) {
	switch kind {
	case "subscribe", "ssubscribe":
		return Event{Kind: Subscribed, Channel: channel}, true
	case "unsubscribe", "sunsubscribe":
		return Event{Kind: Unsubscribed, Channel: channel}, true
	case "message", "smessage":
		return Event{Kind: Message, Channel: channel}, true
	}
	return Event{}, false
}
