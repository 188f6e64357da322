package redigo

import (
	"context"
	"errors"

	"github.com/gomodule/redigo/redis"

	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/driver/adapter"
)

// feed is a connection of its own, not one of the pool: only such a connection can be closed while
// it receives.
type feed struct {
	conn    redis.Conn
	sharded bool
}

// open opens a feed for adapter.NewHub.
func (d *redigoDriver) open(ctx context.Context) (adapter.Feed, error) {
	return dialFeed(ctx, false, func() (redis.Conn, error) { return d.dial(ctx) })
}

// dialFeed dials a feed.
func dialFeed(ctx context.Context, sharded bool, dial func() (redis.Conn, error)) (adapter.Feed, error) {
	conn, err := adapter.Await(ctx, dial)
	if err != nil {
		return nil, explain(ctx, err)
	}
	return feed{conn, sharded}, nil
}

// dial opens a connection outside the pool.
func (d *redigoDriver) dial(ctx context.Context) (redis.Conn, error) {
	switch p := d.pool.(type) {
	case *redis.Pool:
		if p.DialContext != nil {
			return p.DialContext(ctx)
		}
		return p.Dial()
	case interface{ Dial() (redis.Conn, error) }:
		conn, err := p.Dial()
		if b, ok := conn.(binder); ok && err == nil {
			if err = bind(b, ""); err != nil {
				_ = conn.Close() // it has no connection below
			}
		}
		return conn, err
	default:
		return nil, errors.ErrUnsupported
	}
}

// Subscribe implements [adapter.Feed].
func (f feed) Subscribe(channel string) error { return f.send("SUBSCRIBE", channel) }

// Unsubscribe implements [adapter.Feed].
func (f feed) Unsubscribe(channel string) error { return f.send("UNSUBSCRIBE", channel) }

func (f feed) send(command, channel string) error {
	if f.sharded {
		command = "S" + command
	}
	if err := f.conn.Send(command, channel); err != nil {
		return err
	}
	return f.conn.Flush()
}

// Next implements [adapter.Feed]. No read timeout applies. After an error reply redigo keeps the
// connection.
func (f feed) Next() (adapter.Event, error) {
	for {
		reply, err := redis.ReceiveWithTimeout(f.conn, 0)
		if err != nil {
			err = explain(context.Background(), err)
			if driver.CodeOf(err) != "" {
				return adapter.Event{Err: err}, nil
			}
			return adapter.Event{}, err
		}
		push, _ := reply.([]any)
		if len(push) < 2 {
			continue
		}
		kind, _ := redis.String(push[0], nil)
		channel, _ := redis.String(push[1], nil)
		return adapter.Event{Kind: kind, Channel: channel}, nil
	}
}

// Close implements [adapter.Feed]. It drops redigo's error of a broken connection: Next has
// returned it.
func (f feed) Close() error {
	_ = f.conn.Close()
	return nil
}
