package goredis

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/driver/adapter"
)

// command is sent by go-redis once, and only if its caller has not left.
type command struct {
	redis.Cmd
	of      *adapter.Command
	tracked tracked
	stop    context.CancelFunc // ends the context of the sending; nil: not needed
	refusal error              // the error reply that led to stop
}

var _ redis.Cmder = (*command)(nil)

// newCommand wraps a command for go-redis.
func newCommand(ctx context.Context, of *adapter.Command) *command {
	i := 1 // EVALSHA digest
	if of.Words[0] == "SET" {
		i = 3 // SET key value NX
	}
	c := &command{of: of, tracked: tracked{word: of.Words[i], of: of}}
	c.tracked.cmd = &c.Cmd
	args := of.Any()
	args[i] = &c.tracked
	c.Cmd = *redis.NewCmd(ctx, args...)
	c.SetStepCount(1) // else a cluster client asks the server for all its commands first
	return c
}

// tracked is a word of a command, not one by which a client finds the server. The client marshals
// it when it writes the command to a ready connection, however often it or a hook looks at the
// words before. A redis.AutoPipeliner marshals it when it queues the command: it counts as sent
// then.
type tracked struct {
	word string
	of   *adapter.Command
	cmd  *redis.Cmd // nil: a WAIT
}

// refused takes the place of the tracked word in a command that must not be sent. It is no option
// of SET, no digest, no Lua and no number of replicas: the server replies with an error and
// executes nothing. To fail instead would fail the commands beside it, and cost the connection.
const refused = "-"

// MarshalBinary implements encoding.BinaryMarshaler. It never fails.
func (t *tracked) MarshalBinary() ([]byte, error) {
	if t.cmd != nil {
		// When a cluster client follows MOVED or ASK, it leaves the redirection in the command. If the
		// next reply is lost, that would prove wrongly that nothing ran.
		t.cmd.SetErr(nil)
	}
	if !t.of.Begin() {
		return []byte(refused), nil
	}
	return []byte(t.word), nil
}

// String implements fmt.Stringer, for the logs of hooks.
func (t *tracked) String() string { return t.word }

// NoRetry implements redis.Cmder: after a lost reply the command is not sent again. MOVED and ASK
// are still followed.
func (c *command) NoRetry() bool { return true }

// SetErr implements redis.Cmder. A cluster client, whatever NoRetry says, sends again after
// READONLY and sometimes after LOADING, unless its context has ended meanwhile.
func (c *command) SetErr(err error) {
	c.Cmd.SetErr(err)
	if c.stop != nil && c.refusal == nil && (redis.IsReadOnlyError(err) || redis.IsLoadingError(err)) {
		c.refusal = err
		c.stop()
	}
}

// send implements adapter.Client.
func (d *goredisDriver) send(ctx context.Context, commands []*adapter.Command) {
	switch first := commands[0]; {
	case first.Wait[0] != "":
		d.sendPair(ctx, first)
	case len(commands) == 1:
		d.sendOne(ctx, first)
	default:
		d.sendMany(ctx, commands)
	}
}

func (d *goredisDriver) sendOne(ctx context.Context, of *adapter.Command) {
	cmd, sending := newCommand(ctx, of), ctx
	if _, single := d.client.(*redis.Client); !single { // it always obeys NoRetry
		sending, cmd.stop = stoppable(ctx)
		defer cmd.stop()
	}
	err := d.client.Process(sending, cmd)
	if err == nil {
		err = cmd.Err() // a redis.AutoPipeliner may tell it later
	}
	if cmd.refusal != nil {
		err = cmd.refusal
	}
	d.answer(ctx, cmd, err)
}

// sendMany sends commands in one pipeline. A cluster client makes one for each node.
func (d *goredisDriver) sendMany(ctx context.Context, commands []*adapter.Command) {
	pipe := d.client.Pipeline()
	cmds := make([]*command, len(commands))
	for i, of := range commands {
		cmds[i] = newCommand(ctx, of)
		_ = pipe.Process(ctx, cmds[i]) // only queues
	}
	_, err := pipe.Exec(ctx)
	if slices.ContainsFunc(cmds, func(c *command) bool { return c.Err() != nil }) {
		err = nil // it is one of theirs
	}
	for _, cmd := range cmds {
		if err != nil {
			cmd.SetErr(err)
		}
		d.answer(ctx, cmd, cmd.Err())
	}
}

// answer records the outcome of cmd, given the client's error.
func (d *goredisDriver) answer(ctx context.Context, cmd *command, err error) {
	v, err := cmd.reply(ctx, err)
	cmd.of.Answer(v, d.unanswered(err))
}

// unanswered returns err, as final if the client is closed. If err is not the server's, it makes a
// cluster client ask for the nodes anew in the background: otherwise, after the death of a master,
// it would send commands with NoRetry to the dead one for its ClusterStateReloadInterval of a
// minute.
func (d *goredisDriver) unanswered(err error) error {
	if err == nil || driver.CodeOf(err) != "" {
		return err
	}
	if errors.Is(err, redis.ErrClosed) && d.clientClosed() {
		return driver.Permanent(err) // it stays closed
	}
	if cluster, ok := d.client.(interface{ ReloadState(ctx context.Context) }); ok {
		cluster.ReloadState(context.Background())
	}
	return err
}

// clientClosed reports whether the client is closed, after a command has failed with
// redis.ErrClosed. A Ring and a cluster client also close the clients of former nodes, under
// commands on their way there.
func (d *goredisDriver) clientClosed() bool {
	switch c := d.client.(type) {
	case interface {
		GetShardClientForKey(key string) (*redis.Client, error)
	}:
		_, err := c.GetShardClientForKey("")
		return errors.Is(err, redis.ErrClosed)
	case masters:
		var open atomic.Bool
		_ = c.ForEachMaster(ended, func(_ context.Context, n *redis.Client) error { // nothing is sent
			if !errors.Is(n.Ping(ended).Err(), redis.ErrClosed) {
				open.Store(true)
			}
			return nil
		})
		return !open.Load()
	}
	return true
}

// stoppable returns a context under ctx, and a function to end it before.
func stoppable(ctx context.Context) (context.Context, context.CancelFunc) {
	if deadline, ok := ctx.Deadline(); ok && !driver.Cancellable(ctx) {
		// over a bounded.Context, WithCancel costs a goroutine
		return context.WithDeadline(context.WithoutCancel(ctx), deadline)
	}
	return context.WithCancel(ctx)
}

var errNoReply = errors.New("goredis: neither a reply nor an error; a hook of the client may have swallowed it")

// reply returns the reply or the error of c, given the client's error.
func (c *command) reply(ctx context.Context, err error) (any, error) {
	switch {
	case c.answered(err): // an error beside it is another's: of ASKING, of a hook
		return c.Val(), nil
	case errors.Is(err, redis.Nil):
		return nil, nil
	case err != nil:
		return nil, classify(ctx, err)
	}
	return nil, errNoReply
}

// answered reports whether c has a reply. If a reply is cut in the middle, go-redis returns an empty
// text, list or map beside the error.
func (c *command) answered(err error) bool {
	switch v := c.Val().(type) {
	case nil:
		return false
	case string:
		return err == nil || v != ""
	case []any:
		return err == nil || v != nil
	case map[any]any:
		return err == nil || v != nil
	}
	return true
}

// classify returns err as an error of package driver, over the client's.
func classify(ctx context.Context, err error) error {
	var reply redis.Error
	var slow interface{ Timeout() bool }
	switch {
	case errors.As(err, &reply):
		err = adapter.NewServerError(reply.Error(), err)
	case adapter.Ended(ctx) != nil && !errors.Is(err, context.DeadlineExceeded) && errors.As(err, &slow) && slow.Timeout():
		err = fmt.Errorf("%w: %w", context.DeadlineExceeded, err) // the client's i/o timeout may be ctx's
	}
	if adapter.DialFailed(err) || errors.Is(err, redis.ErrClosed) ||
		errors.Is(err, redis.ErrPoolTimeout) || errors.Is(err, redis.ErrPoolExhausted) {
		return driver.NotSent(err)
	}
	return err
}
