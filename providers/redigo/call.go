package redigo

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/driver/adapter"
)

// send takes a connection, sends commands over it and gives it back.
func (d *redigoDriver) send(ctx context.Context, commands []*adapter.Command) {
	conn, err := d.connect(ctx, commands[0].Key())
	if err != nil {
		err = unavailable(ctx, err)
		for _, c := range commands {
			c.Answer(nil, err)
		}
		return
	}
	defer conn.Close() //nolint:errcheck // the pool drops a connection once it breaks in use
	d.exchange(ctx, conn, commands, false)
}

// exchange sends commands over conn, and reads the replies. Once the connection breaks, the outcome
// of those without a reply is unknown. asking makes a node serve a single command of a slot that it
// is about to get.
func (d *redigoDriver) exchange(ctx context.Context, conn redis.Conn, commands []*adapter.Command, asking bool) {
	w := d.closer.watch(ctx, conn)
	defer w.end()
	if asking { // in a round trip of its own: a refusal of it says nothing about the command after it
		if _, err := do(ctx, conn, "ASKING", nil); err != nil {
			commands[0].Answer(nil, driver.NotSent(explain(ctx, err)))
			return
		}
	}
	if c := commands[0]; len(commands) == 1 && c.Wait[0] == "" {
		if c.Begin() {
			v, err := do(ctx, conn, c.Words[0], c.Any()[1:])
			c.Answer(v, explain(ctx, err))
		}
		return
	}
	// It reads meanwhile: a server with unread replies may stop reading.
	var begun []*adapter.Command
	for _, c := range commands {
		if c.Begin() {
			begun = append(begun, c)
		}
	}
	var writing sync.WaitGroup
	writing.Go(func() {
		for _, c := range begun {
			if write(conn, c) != nil {
				return // the connection is closed then: reading fails as well
			}
		}
		_ = conn.Flush() // the same
	})
	defer writing.Wait()
	var broken error
	for _, c := range begun {
		if broken != nil {
			c.Answer(nil, explain(ctx, broken))
		} else {
			broken = d.read(ctx, conn, c)
		}
	}
}

// do sends one command and reads its reply.
func do(ctx context.Context, conn redis.Conn, command string, args []any) (any, error) {
	if d, ok := readLimit(ctx); ok {
		return redis.DoWithTimeout(conn, d, command, args...)
	}
	return conn.Do(command, args...)
}

// write writes c, and the WAIT behind it if there is one.
func write(conn redis.Conn, c *adapter.Command) error {
	if err := conn.Send(c.Words[0], c.Any()[1:]...); err != nil || c.Wait[0] == "" {
		return err
	}
	return conn.Send("WAIT", c.Wait[0], c.Wait[1])
}

// read reads the reply to c, also an error reply: left behind, it would be the next command's. It
// returns an error if the connection is broken.
func (d *redigoDriver) read(ctx context.Context, conn redis.Conn, c *adapter.Command) (broken error) {
	v, err := receive(ctx, conn)
	c.Answer(v, explain(ctx, err))
	if c.Wait[0] != "" {
		v, err = receive(ctx, conn)
		c.AnswerWait(v, explain(ctx, err))
	}
	if conn.Err() != nil {
		return err
	}
	return nil
}

func receive(ctx context.Context, conn redis.Conn) (any, error) {
	if d, ok := readLimit(ctx); ok {
		return redis.ReceiveWithTimeout(conn, d)
	}
	return conn.Receive()
}

// unavailable returns the error of a call without a connection. A closed pool stays closed.
func unavailable(ctx context.Context, err error) error {
	closed := isClosed(err)
	err = driver.NotSent(explain(ctx, err))
	if closed {
		err = driver.Permanent(err)
	}
	return err
}

// connect is get, but returns when ctx ends, unless maxDials others are in get. A late connection goes
// back to the pool.
func (d *redigoDriver) connect(ctx context.Context, key string) (redis.Conn, error) {
	if d.idle != nil {
		if conn, err := d.idle.take(ctx); conn != nil || err != nil {
			return conn, err
		}
	}
	get := func() (redis.Conn, error) {
		d.dials.Add(1)
		defer d.dials.Add(-1)
		return d.get(ctx, key)
	}
	if d.dials.Load() >= d.maxDials {
		return get() // in the goroutine of a flight, which keeps its place
	}
	conn, err := adapter.Await(ctx, get)
	if _, late := errors.AsType[*driver.PendingError](err); late {
		err = ctx.Err()
	}
	return conn, err
}

// get takes a connection from the pool; one of a cluster is bound to key's node, since by itself it
// would take the digest of a script for the key. Nothing was sent if it fails.
func (d *redigoDriver) get(ctx context.Context, key string) (redis.Conn, error) {
	if d.idle != nil {
		return d.idle.get(ctx)
	}
	if p, ok := d.pool.(interface {
		GetContext(context.Context) (redis.Conn, error)
	}); ok {
		return p.GetContext(ctx)
	}
	conn := d.pool.Get()
	err := conn.Err()
	if b, ok := conn.(binder); ok && err == nil {
		err = bind(b, key)
	}
	if err != nil {
		_ = conn.Close() // it was not used
		return nil, err
	}
	return conn, nil
}

// grace is how much longer than ctx a read may last. The watcher ends the call; grace ends the
// read.
const grace = time.Second

// readLimit is never zero: to redigo zero is no limit at all.
func readLimit(ctx context.Context) (time.Duration, bool) {
	deadline, ok := ctx.Deadline()
	return max(time.Until(deadline)+grace, grace), ok
}

// explain turns an error reply into a *driver.ServerError, and adds the error of an ended ctx to
// others.
func explain(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if reply, ok := errors.AsType[redis.Error](err); ok {
		return adapter.NewServerError(string(reply), err)
	}
	if end := adapter.Ended(ctx); end != nil && !errors.Is(err, end) {
		return fmt.Errorf("%w: %w", end, err)
	}
	return err
}

// closeNetwork closes the network connection below a pool's connection in use; Close must not be
// called then. A receive under an ended context does so, and nothing else.
func closeNetwork(conn redis.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), 0)
	defer cancel()
	_, _ = redis.ReceiveContext(conn, ctx) // always fails
}
