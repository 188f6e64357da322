package respdriver

import (
	"context"

	"github.com/holdfast-go/holdfast/internal/resp"
	"github.com/holdfast-go/holdfast/locker/driver/adapter"
)

// open connects a feed for the Hub.
func (d *Driver) open(ctx context.Context) (adapter.Feed, error) {
	c, err := d.dial(ctx, d.addrOf(ctx, ""))
	return feed{Conn: c}, err
}

// feed implements adapter.Feed. Close is the connection's.
type feed struct {
	*resp.Conn
	shard string // "S" on a connection for SSUBSCRIBE
}

// Subscribe implements adapter.Feed.
func (f feed) Subscribe(channel string) error { return f.Send(f.shard+"SUBSCRIBE", channel) }

// Unsubscribe implements adapter.Feed.
func (f feed) Unsubscribe(channel string) error { return f.Send(f.shard+"UNSUBSCRIBE", channel) }

// Next implements adapter.Feed.
func (f feed) Next() (adapter.Event, error) {
	for {
		v, err := f.Receive()
		if err != nil {
			return adapter.Event{}, err
		}
		if text, refused := v.Any().(resp.Error); refused {
			err := adapter.NewServerError(string(text), text)
			return adapter.Event{Err: err}, nil
		}
		if words := v.Args(); len(words) == 3 {
			return adapter.Event{Kind: words[0], Channel: words[1]}, nil
		}
	}
}
