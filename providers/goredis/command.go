package goredis

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/driver/adapter"
)

// command is a command that go-redis sends once, and that knows whether it did.
type command struct {
	redis.Cmd
	delivery *delivery
	own      delivery // what delivery points to, unless c is one of several commands of a call
	tracked  tracked
	batched  bool               // it is read while the client may still be working on its batch
	told     atomic.Bool        // its reply has arrived; set only if batched
	stop     context.CancelFunc // ends the context that c is sent under; nil where that is not needed
	refusal  error              // the error reply that called for stop
}

var _ redis.Cmder = (*command)(nil)

// newCommand makes a command of words, which it keeps.
func newCommand(ctx context.Context, words []any) *command {
	c := &command{Cmd: *redis.NewCmd(ctx, words...)}
	c.delivery = &c.own
	c.track(words)
	c.SetStepCount(1) // else a cluster client asks the server for all its commands first
	return c
}

// track replaces a word of a SET, a WAIT or a script's command, one by which no client finds the
// server. Other commands are not tracked.
func (c *command) track(words []any) {
	i := 1 // EVALSHA digest, WAIT replicas
	switch words[0] {
	case "EVALSHA", "EVAL", "WAIT":
	case "SET":
		i = 3 // SET key value NX
	default:
		return
	}
	if word, ok := words[i].(string); ok {
		c.tracked = tracked{word, c}
		words[i] = &c.tracked
	}
}

// NoRetry implements redis.Cmder: a command whose reply is lost is not sent again. MOVED and ASK
// are still followed.
func (c *command) NoRetry() bool { return true }

// SetErr implements redis.Cmder. A cluster client, whatever NoRetry says, sends again after
// READONLY and sometimes after LOADING, unless its context has ended meanwhile.
func (c *command) SetErr(err error) {
	c.Cmd.SetErr(err)
	if c.batched && err == nil && c.Val() != nil {
		c.told.Store(true)
	}
	if c.stop != nil && c.refusal == nil && (redis.IsReadOnlyError(err) || redis.IsLoadingError(err)) {
		c.refusal = err
		c.stop()
	}
}

// process sends cmd, whose caller's context is ctx, under the context sending. It returns what
// NewReply understands.
func (d *goredisDriver) process(ctx, sending context.Context, cmd *command) (any, error) {
	if _, single := d.client.(*redis.Client); single { // that always obeys NoRetry
		sending = d.expiries.Share(sending, time.Now())
		defer adapter.Unshare(sending)
	} else {
		sending, cmd.stop = stoppable(sending)
		defer cmd.stop()
	}
	err := d.client.Process(sending, cmd)
	if err == nil {
		err = cmd.Err() // a redis.AutoPipeliner may tell it later
	}
	if cmd.refusal != nil {
		err = cmd.refusal
	}
	v, err := cmd.reply(ctx, err)
	return v, d.unanswered(err)
}

// unanswered returns err, as final if the client is closed. If err is not the server's, it makes a
// cluster client ask for the nodes anew in the background: after the death of a master it would
// otherwise send what must not be repeated to the dead one, for its ClusterStateReloadInterval of a
// minute.
func (d *goredisDriver) unanswered(err error) error {
	if err == nil || driver.CodeOf(err) != "" || errors.Is(err, context.Canceled) {
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

// clientClosed reports whether the client is closed, given that a command has failed with
// redis.ErrClosed. A Ring and a cluster client also close the clients of nodes that they no longer
// need, under commands that are on their way there.
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

// stoppable returns a context that ends with ctx, or before.
func stoppable(ctx context.Context) (context.Context, context.CancelFunc) {
	if deadline, ok := ctx.Deadline(); ok && !driver.Cancellable(ctx) {
		// over a driver.Bounded, WithCancel costs a goroutine
		return context.WithDeadline(context.WithoutCancel(ctx), deadline)
	}
	return context.WithCancel(ctx)
}

var errNoReply = errors.New("goredis: neither a reply nor an error; a hook of the client may have swallowed it")

// reply returns the reply or the error of c, given the client's error.
func (c *command) reply(ctx context.Context, err error) (any, error) {
	switch {
	case c.Val() != nil: // an error beside it is another's: of ASKING, of a hook
		return c.Val(), nil
	case errors.Is(err, redis.Nil):
		return nil, nil
	case err != nil:
		return nil, classify(ctx, err, c.delivery.sent())
	}
	return nil, errNoReply
}

// classify returns err as an error of package driver that wraps the client's.
func classify(ctx context.Context, err error, sent bool) error {
	var reply redis.Error
	var slow interface{ Timeout() bool }
	switch {
	case errors.As(err, &reply):
		if short, cut := adapter.WithoutArguments(reply.Error()); cut {
			err = sameType(redis.ErrNoScript, short)
		}
		err = adapter.NewServerError(reply.Error(), err)
	case late(ctx) && !errors.Is(err, context.DeadlineExceeded) && errors.As(err, &slow) && slow.Timeout():
		err = fmt.Errorf("%w: %w", context.DeadlineExceeded, err) // the client's i/o timeout does not say whose it was
	}
	if !sent || adapter.DialFailed(err) || errors.Is(err, redis.ErrClosed) ||
		errors.Is(err, redis.ErrPoolTimeout) || errors.Is(err, redis.ErrPoolExhausted) {
		return driver.NotSent(err)
	}
	return err
}

// sameType makes an error reply of go-redis' own type, which has no name outside of it.
func sameType[E ~string](_ E, text string) E { return E(text) }

// late reports whether ctx's deadline has passed; ctx.Err may lag behind the client's timer.
func late(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	return ok && !time.Now().Before(deadline)
}
