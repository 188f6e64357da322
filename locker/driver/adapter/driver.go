package adapter

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/holdfast-go/holdfast/locker/driver"
)

// Driver implements driver.Driver over pipelines and a [Hub]. An adapter fills in its fields, and
// embeds it if a method is to do something else.
type Driver struct {
	Base
	// ClientInfo is returned by Info.
	ClientInfo driver.Info
	// Pipelines send the commands.
	Pipelines Pipelines
	// Hub has the subscriptions. If it is nil, Subscribe returns errors.ErrUnsupported.
	Hub *Hub
	// OneServer is set if one server has the scripts and the subscriptions: a message's number of
	// receivers is right. It is also set behind Sentinels, although a subscription may stay at a
	// former master until its connection breaks. Such waiters get no message, however it is counted;
	// a release drops them from the queue, and their next attempt restores their places.
	OneServer bool

	scripts scriptCache
}

// Pipelines are those of all servers of a client: a [Pipeline] to the only server, a [Topology], or
// those of [NewSlotPipelines].
type Pipelines interface {
	// To returns the pipeline to the server of key; "" for a script without keys. It asks nobody.
	To(key string) *Pipeline
	// Close frees the resources of the pipelines.
	Close()
}

// Server implements driver.Driver: there is one for each pipeline.
func (d *Driver) Server(key string) any { return d.Pipelines.To(key) }

// SetNX implements driver.Driver.
func (d *Driver) SetNX(ctx context.Context, key, value string, ttl time.Duration) (bool, error) {
	c := newSetNX(key, value, strconv.FormatInt(ttl.Milliseconds(), 10))
	if err := d.do(ctx, c); err != nil {
		return false, err
	}
	return c.isSet()
}

// isSet reads the reply to SET NX.
func (c *Command) isSet() (bool, error) {
	switch {
	case c.err != nil:
		return false, c.err
	case c.reply == "OK":
		return true, nil
	case c.reply == nil:
		return false, nil
	}
	return false, fmt.Errorf("SET NX was answered with %T %.100q: want OK or nil", c.reply, fmt.Sprint(c.reply))
}

// Eval implements driver.Driver.
func (d *Driver) Eval(ctx context.Context, s *driver.Script, keys, args []string) (driver.Reply, error) {
	numKeys := strconv.Itoa(len(keys))
	return d.scripts.eval(ctx, s, func(command, body string) (driver.Reply, error) {
		c := newScript(command, body, numKeys, keys, args)
		if err := d.do(ctx, c); err != nil {
			return driver.Reply{}, err
		}
		return c.result()
	})
}

// result reads the reply to a script.
func (c *Command) result() (driver.Reply, error) {
	if c.err != nil {
		return driver.Reply{}, c.err
	}
	return driver.NewReply(c.reply)
}

// EvalAcked implements driver.Driver.
func (d *Driver) EvalAcked(
	ctx context.Context, s *driver.Script, keys, args []string, replicas int, timeout time.Duration,
) (driver.Reply, int, error) {
	if key := append(slices.Clip(keys), "")[0]; !d.Pipelines.To(key).client.Waits {
		return d.Base.EvalAcked(ctx, s, keys, args, replicas, timeout)
	}
	numKeys := strconv.Itoa(len(keys))
	return d.scripts.evalAcked(ctx, s, replicas, timeout,
		func(command, body string, wait [2]string) (driver.Reply, int, error) {
			c := newScript(command, body, numKeys, keys, args)
			c.Wait = wait
			if err := d.do(ctx, c); err != nil {
				return driver.Reply{}, 0, err
			}
			return c.ackedResult()
		})
}

// ackedResult reads the replies to a script and the WAIT behind it.
func (c *Command) ackedResult() (driver.Reply, int, error) {
	var wait acked
	if c.acked != nil {
		wait = *c.acked
	}
	return ackedReply(c.reply, c.err, wait.reply, wait.err)
}

// Do sends a command without keys, and returns the client's decoded reply.
func (d *Driver) Do(ctx context.Context, words ...string) (any, error) {
	c := &Command{Words: words}
	err := d.do(ctx, c)
	if err != nil {
		return nil, err
	}
	return c.reply, nil
}

// do sends c.
func (d *Driver) do(ctx context.Context, c *Command) error {
	if err := d.CheckOpen(); err != nil {
		return err
	}
	return d.Pipelines.To(c.Key()).do(ctx, c)
}

// Subscribe implements driver.Driver.
func (d *Driver) Subscribe(ctx context.Context, channel string) (driver.Subscription, error) {
	if err := d.CheckOpen(); err != nil {
		return nil, err
	}
	if d.Hub == nil {
		return nil, errors.ErrUnsupported
	}
	return d.Hub.Subscribe(ctx, channel)
}

// Delivery implements driver.Driver.
func (d *Driver) Delivery(channel string) driver.Delivery {
	switch {
	case d.OneServer:
		return driver.DeliveryCounted
	case d.Hub == nil:
		return driver.DeliveryPlain
	}
	return d.Hub.Delivery(channel)
}

// Info implements driver.Driver.
func (d *Driver) Info() driver.Info { return d.ClientInfo }

// Close implements driver.Driver.
func (d *Driver) Close() error {
	defer d.Pipelines.Close()
	return d.Shutdown(d.Hub)
}
