package driver

// EventKind says what an [Event] reports.
type EventKind uint8

// The kinds of events of a Feed.
const (
	Subscribed EventKind = iota + 1 // the server confirmed a subscription to Channel
	Message                         // a message arrived on Channel
)

// Event is what a subscriber connection received. What is neither a confirmation nor a message is not reported.
type Event struct {
	Kind    EventKind
	Channel string
}

// Feed is one connection in subscriber state, as an adapter supplies it to a [Hub]. Subscribe and Unsubscribe send their
// command and do not wait for its confirmation; the Hub calls them from one goroutine at a time, but while Next
// blocks. After an error of theirs it closes the feed.
type Feed interface {
	Subscribe(channel string) error
	Unsubscribe(channel string) error
	// Next blocks until the next event. After an error the Hub closes the feed and opens another; an error reply must be
	// a *ServerError. Where only Close ended it, that matches net.ErrClosed, io.ErrClosedPipe or context.Canceled: then the
	// Hub tells why it closed the feed.
	Next() (Event, error)
	// Close closes the connection and makes a blocked Next, Subscribe or Unsubscribe return. It may be called more than
	// once, and by several goroutines.
	Close() error
}
