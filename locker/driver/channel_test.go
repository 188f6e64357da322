package driver_test

import (
	"context"
	"errors"
	"testing"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker/driver"
)

// listening is a driver with Info and Subscribe only.
type listening struct {
	driver.Driver
	channel string
	ctx     context.Context //nolint:containedctx // that of the call
}

var errListening = errors.New("asked the driver")

func (*listening) Info() driver.Info { return driver.Info{Address: "192.0.2.7:6379"} }

func (d *listening) Subscribe(ctx context.Context, channel string) (driver.Subscription, error) {
	d.ctx, d.channel = ctx, channel
	return nil, errListening
}

func TestChannel(t *testing.T) {
	t.Parallel()
	one, other := &listening{}, &listening{}
	c := driver.NewChannel(one, "{a}:wake")
	if c.Name() != "{a}:wake" || c.IsZero() {
		t.Errorf("name %q, zero: %v", c.Name(), c.IsZero())
	}
	check.Equal(t, "Info", c.Info(), one.Info())
	_, err := c.Subscribe(t.Context())
	check.Error(t, "Subscribe", err, errListening)
	if one.channel != "{a}:wake" || one.ctx != t.Context() {
		t.Errorf("the driver was asked for %q with %v", one.channel, one.ctx)
	}
	if c != driver.NewChannel(one, "{a}:wake") || c == driver.NewChannel(other, "{a}:wake") || c == driver.NewChannel(one, "b") {
		t.Error("channels are not compared by driver and name")
	}
}

func TestZeroChannel(t *testing.T) {
	t.Parallel()
	var c driver.Channel
	if !c.IsZero() || c.Name() != "" || c.Info() != (driver.Info{}) {
		t.Errorf("zero: %v, name %q, info %v", c.IsZero(), c.Name(), c.Info())
	}
	sub, err := c.Subscribe(t.Context())
	check.Error(t, "Subscribe", err, errors.ErrUnsupported)
	if sub != nil {
		t.Error("a subscription beside the error")
	}
}
