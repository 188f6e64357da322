package redigo

import (
	"context"
	"errors"

	"github.com/gomodule/redigo/redis"

	"github.com/holdfast-go/holdfast/locker/driver"
)

// feed is a connection of its own, not one of the pool: only such a connection can be closed while
// it receives.
type feed struct{ conn redis.PubSubConn }

// open dials a feed, and closes one that comes too late for ctx.
func (a *adapter) open(ctx context.Context) (driver.Feed, error) {
	type dialed struct {
		conn redis.Conn
		err  error
	}
	ready := make(chan dialed)
	go func() {
		conn, err := a.dial(ctx)
		select {
		case ready <- dialed{conn, err}:
		case <-ctx.Done():
			if err == nil {
				_ = conn.Close() // nobody waits for it
			}
		}
	}()
	select {
	case d := <-ready:
		if d.err != nil {
			return nil, explain(ctx, d.err)
		}
		return feed{redis.PubSubConn{Conn: d.conn}}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// dial opens a connection that no pool manages.
func (a *adapter) dial(ctx context.Context) (redis.Conn, error) {
	switch p := a.pool.(type) {
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

// Subscribe implements [driver.Feed].
func (f feed) Subscribe(channel string) error { return f.conn.Subscribe(channel) }

// Unsubscribe implements [driver.Feed].
func (f feed) Unsubscribe(channel string) error { return f.conn.Unsubscribe(channel) }

// Next implements [driver.Feed]. No read timeout applies. redigo keeps a connection on which an
// error reply came.
func (f feed) Next() (driver.Event, error) {
	for {
		switch v := f.conn.ReceiveWithTimeout(0).(type) {
		case redis.Message:
			return driver.Event{Kind: driver.Message, Channel: v.Channel}, nil
		case redis.Subscription:
			switch v.Kind {
			case "subscribe":
				return driver.Event{Kind: driver.Subscribed, Channel: v.Channel}, nil
			case "unsubscribe":
				return driver.Event{Kind: driver.Unsubscribed, Channel: v.Channel}, nil
			}
		case error:
			err := explain(context.Background(), v)
			if driver.CodeOf(err) != "" {
				return driver.Event{Kind: driver.Refused, Err: err}, nil
			}
			return driver.Event{}, err
		}
	}
}

// Close implements [driver.Feed]. What redigo says of a connection that broke before, Next has
// said.
func (f feed) Close() error {
	_ = f.conn.Close()
	return nil
}
