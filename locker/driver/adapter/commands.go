package adapter

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/holdfast-go/holdfast/locker/driver"
)

// Commands implements the methods of driver.Driver that send, over pipelines. An adapter embeds it
// and sets To.
type Commands struct {
	Base
	// To returns the pipeline to the server of key; "" for a script without keys. It asks nobody.
	To func(key string) *Pipeline

	scripts ScriptCache
}

// SetNX implements driver.Driver.
func (d *Commands) SetNX(ctx context.Context, key, value string, ttl time.Duration) (bool, error) {
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
func (d *Commands) Eval(ctx context.Context, s *driver.Script, keys, args []string) (driver.Reply, error) {
	numKeys := strconv.Itoa(len(keys))
	return d.scripts.Eval(ctx, s, func(command, body string) (driver.Reply, error) {
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

// EvalAcked implements driver.Acknowledger.
func (d *Commands) EvalAcked(
	ctx context.Context, s *driver.Script, keys, args []string, replicas int, timeout time.Duration,
) (driver.Reply, int, error) {
	numKeys := strconv.Itoa(len(keys))
	return d.scripts.EvalAcked(ctx, s, replicas, timeout,
		func(command, body string, wait [2]string) (driver.Reply, int, error) {
			c := newScript(command, body, numKeys, keys, args)
			c.Wait = wait
			if err := d.do(ctx, c); err != nil {
				return driver.Reply{}, 0, err
			}
			return AckedReply(c.reply, c.err, c.acked, c.waitErr)
		})
}

// Do sends a command without keys, and returns what the client decoded.
func (d *Commands) Do(ctx context.Context, words ...string) (any, error) {
	c := &Command{Words: words}
	err := d.do(ctx, c)
	if err != nil {
		return nil, err
	}
	return c.reply, nil
}

// do sends c.
func (d *Commands) do(ctx context.Context, c *Command) error {
	if err := d.CheckOpen(); err != nil {
		return err
	}
	return d.To(c.Key()).do(ctx, c)
}

// EvalMany implements driver.Batcher. Scripts that a server did not know are sent again by source.
func (d *Commands) EvalMany(ctx context.Context, calls []driver.Call) []driver.Result {
	results := make([]driver.Result, len(calls))
	all := make([]int, len(calls))
	for i := range all {
		all[i] = i
	}
	d.round(ctx, "EVALSHA", (*driver.Script).Digest, calls, all, results)
	var unknown []int
	for i, r := range results {
		if driver.CodeOf(r.Err) == "NOSCRIPT" {
			unknown = append(unknown, i)
		}
	}
	d.round(ctx, "EVAL", (*driver.Script).Source, calls, unknown, results)
	return results
}

// round sends those calls that which indexes, together, and fills in their results.
func (d *Commands) round(ctx context.Context, command string, body func(*driver.Script) string,
	calls []driver.Call, which []int, results []driver.Result) {
	commands, pipelines := make([]*Command, len(which)), make([]*Pipeline, len(which))
	for n, i := range which {
		call := calls[i]
		c := newScript(command, body(call.Script), strconv.Itoa(len(call.Keys)), call.Keys, call.Args)
		commands[n], pipelines[n] = c, d.To(c.Key())
		if results[i].Err = cmp.Or(d.CheckOpen(), driver.NotSent(ctx.Err())); results[i].Err == nil {
			c.began = time.Now()
			pipelines[n].enqueue(ctx, c)
		}
	}
	for n, i := range which {
		if results[i].Err != nil {
			continue
		}
		if results[i].Err = pipelines[n].await(ctx, commands[n], time.Now()); results[i].Err == nil {
			results[i].Reply, results[i].Err = commands[n].result()
		}
	}
}
