package driver

import (
	"context"
	"errors"
)

// Channel is a place to hear of releases: a driver and a channel name. It is comparable. The zero Channel has no
// subscriptions.
type Channel struct {
	d    Driver
	name string
}

// NewChannel names a channel of d. d's dynamic type must be comparable, as a pointer is.
func NewChannel(d Driver, name string) Channel { return Channel{d, name} }

// Name is the channel's name on the server, "" for the zero Channel.
func (c Channel) Name() string { return c.name }

// IsZero tells whether c is the zero Channel.
func (c Channel) IsZero() bool { return c.d == nil }

// Info returns the Info of c's driver, or the zero Info if c is the zero Channel.
func (c Channel) Info() Info {
	if c.d == nil {
		return Info{}
	}
	return c.d.Info()
}

// Subscribe subscribes through c's driver. The zero Channel answers errors.ErrUnsupported.
func (c Channel) Subscribe(ctx context.Context) (Subscription, error) {
	if c.d == nil {
		return nil, errors.ErrUnsupported
	}
	return c.d.Subscribe(ctx, c.name)
}
