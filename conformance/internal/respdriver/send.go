package respdriver

import (
	"context"
	"errors"
	"os"

	"github.com/holdfast-go/holdfast/internal/resp"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/driver/adapter"
)

// do sends a command once, and again only after MOVED or ASK, which prove that it was not executed.
func (d *Driver) do(ctx context.Context, keys []string, command ...any) (any, error) {
	replies, err := d.doAll(ctx, keys, command)
	if err != nil {
		return nil, err
	}
	return replies[0], nil
}

// doAll is do for several commands, which are sent together on one connection. The error is that of
// the first one; error replies of the others are among the replies.
func (d *Driver) doAll(ctx context.Context, keys []string, commands ...[]any) ([]any, error) {
	if err := d.CheckOpen(); err != nil {
		return nil, err
	}
	to := node{addr: d.addrOf(keys)}
	for {
		replies, err := d.send(ctx, to, commands)
		text, refused := errors.AsType[resp.Error](err)
		if !refused {
			if err != nil {
				d.forget(to.addr)
			}
			return replies, err
		}
		next, redirected := d.redirect(text)
		if !redirected {
			return nil, adapter.NewServerError(string(text), text)
		}
		to = next
	}
}

// send sends commands on one connection. If ctx ends first, it closes the connection, and the
// outcome is unknown.
func (d *Driver) send(ctx context.Context, to node, commands [][]any) ([]any, error) {
	if err := ctx.Err(); err != nil {
		return nil, driver.NotSent(err)
	}
	c, err := d.conn(ctx, to.addr)
	if err != nil {
		return nil, driver.NotSent(ctxOr(ctx, err))
	}
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	if to.asking {
		_, err = c.Do("ASKING")
	}
	var replies []any
	if err == nil {
		replies, err = exchange(c, commands)
	}
	_, refused := errors.AsType[resp.Error](err)
	answered := err == nil || refused
	if stop() && answered {
		d.putBack(to.addr, c)
	} else {
		_ = c.Close()
	}
	if !answered {
		return nil, ctxOr(ctx, err)
	}
	return replies, err
}

// exchange sends commands and reads as many replies. The error is the first reply's, or the
// connection's.
func exchange(c *resp.Conn, commands [][]any) (replies []any, err error) {
	for _, words := range commands {
		if err := c.Send(words...); err != nil {
			return nil, err
		}
	}
	for i := range commands {
		v, broken := c.Receive()
		if broken != nil {
			return nil, broken
		}
		reply := v.Any()
		if text, refused := reply.(resp.Error); refused && i == 0 {
			err = text
		}
		replies = append(replies, reply)
	}
	return replies, err
}

// ctxOr returns ctx's error if it has ended: then err is only that of the closed connection.
func ctxOr(ctx context.Context, err error) error {
	if ended := ctx.Err(); ended != nil {
		return ended
	}
	if _, bounded := ctx.Deadline(); bounded && errors.Is(err, os.ErrDeadlineExceeded) {
		return context.DeadlineExceeded // the socket's timer may fire before that of ctx
	}
	return err
}
