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
type feed struct{ conn redis.PubSubConn }

// open dials a feed, and closes one that comes too late for ctx.
func (d *redigoDriver) open(ctx context.Context) (adapter.Feed, error) {
	type dialed struct {
		conn redis.Conn
		err  error
	}
	ready := make(chan dialed)
	go func() {
		conn, err := d.dial(ctx)
		select {
		case ready <- dialed{conn, err}:
		case <-ctx.Done():
			if err == nil {
				_ = conn.Close() // nobody waits for it
			}
		}
	}()
	select {
	case got := <-ready:
		if got.err != nil {
			return nil, explain(ctx, got.err)
		}
		return feed{redis.PubSubConn{Conn: got.conn}}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// dial opens a connection that no pool manages.
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
func (f feed) Subscribe(channel string) error { return f.conn.Subscribe(channel) }

// Unsubscribe implements [adapter.Feed].
func (f feed) Unsubscribe(channel string) error { return f.conn.Unsubscribe(channel) }

// Next implements [adapter.Feed]. No read timeout applies. redigo keeps a connection on which an
// error reply came.
func (f feed) Next() (adapter.Event, error) {
	for {
		switch v := f.conn.ReceiveWithTimeout(0).(type) {
		case redis.Message:
			return adapter.Event{Kind: adapter.Message, Channel: v.Channel}, nil
		case redis.Subscription:
			switch v.Kind {
			case "subscribe":
				return adapter.Event{Kind: adapter.Subscribed, Channel: v.Channel}, nil
			case "unsubscribe":
				return adapter.Event{Kind: adapter.Unsubscribed, Channel: v.Channel}, nil
			}
		case error:
			err := explain(context.Background(), v)
			if driver.CodeOf(err) != "" {
				return adapter.Event{Kind: adapter.Refused, Err: err}, nil
			}
			return adapter.Event{}, err
		}
	}
}

// Close implements [adapter.Feed]. What redigo says of a connection that broke before, Next has
// said.
func (f feed) Close() error {
	_ = f.conn.Close()
	return nil
}
