package driver

import (
	"context"
	"errors"
)

// Channel announces the releases of a lock: a driver and the name of a channel. It is
// comparable. The zero Channel cannot be subscribed to.
type Channel struct {
	d    Driver
	name string
}

// NewChannel returns the channel name of d. The dynamic type of d must be comparable, as a pointer
// is.
func NewChannel(d Driver, name string) Channel { return Channel{d, name} }

// Name returns the channel's name on the server, or "" if c is the zero Channel.
func (c Channel) Name() string { return c.name }

// IsZero reports whether c is the zero Channel.
func (c Channel) IsZero() bool { return c.d == nil }

// For returns the channel of one waiter, for releases to wake it alone. id is its lease.Waiting.ID.
// The zero Channel has none.
func (c Channel) For(id string) Channel {
	if c.d == nil {
		return c
	}
	return Channel{c.d, c.name + ":" + id}
}

// Info returns the Info of c's driver, or the zero Info if c is the zero Channel.
func (c Channel) Info() Info {
	if c.d == nil {
		return Info{}
	}
	return c.d.Info()
}

// Subscribe subscribes through c's driver. If c is the zero Channel, the error is
// errors.ErrUnsupported.
func (c Channel) Subscribe(ctx context.Context) (Subscription, error) {
	if c.d == nil {
		return nil, errors.ErrUnsupported
	}
	return c.d.Subscribe(ctx, c.name)
}
