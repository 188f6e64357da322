package rueidis

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/driver/adapter"
)

// pooledTimeout bounds a command that has a connection for itself: one of the pool, where the
// client has no timeout, or one that nobody else uses at the moment.
const pooledTimeout = 10 * time.Second

// send sends one command: words, then keys, then args. read converts its answer; a nil reply is no
// error.
func send[T any](
	ctx context.Context, d *rueidisDriver, keys, args []string, read func(rueidis.RedisResult) (T, error),
	words ...string,
) (v T, err error) {
	if err = d.ready(ctx); err != nil {
		return v, err
	}
	cmd, err := d.build(false, keys, args, words...)
	if err != nil {
		return v, err
	}
	n, closing := d.nodeOf(cmd), d.closing.Load()
	now := time.Now()
	r := n.route(ctx, now)
	if r == direct {
		within := n.pipelined(ctx, now, n.direct.Add(1))
		sent := n.now()
		res := d.client.Do(within, cmd)
		n.answered(within)
		d.observeDirect(ctx, n, sent, res)
		return convert(ctx, d, res, closing, read)
	}
	var own rueidis.Completed // for a connection of its own
	if r != detached {
		if own, err = d.build(true, keys, args, words...); err != nil {
			return v, err
		}
	}
	return sendDetached(ctx, d, n, r, cmd, own, closing, read)
}

// sendDetached sends cmd over a shared connection or own over one of its own.
func sendDetached[T any](
	ctx context.Context, d *rueidisDriver, n *node, r route, cmd, own rueidis.Completed, closing bool,
	read func(rueidis.RedisResult) (T, error),
) (T, error) {
	return detach(ctx, n, n.gates(r), func(c *call) (T, error) {
		if c.gate == n.shared {
			res := d.client.Do(n.lasting(ctx, c), cmd)
			n.observe(c.sent, res.NonRedisError() == nil)
			return convert(ctx, d, res, closing, read)
		}
		return convert(ctx, d, d.client.Do(n.patient(ctx, c), own), closing, read)
	})
}

// convert is read, or the error where there is no reply or the reply is one.
func convert[T any](
	ctx context.Context, d *rueidisDriver, res rueidis.RedisResult, closing bool,
	read func(rueidis.RedisResult) (T, error),
) (v T, err error) {
	if err = d.outcome(ctx, res, closing); err != nil {
		return v, err
	}
	return read(res)
}

// observeDirect notes what came of one or more direct commands, of which res is one result.
func (d *rueidisDriver) observeDirect(
	ctx context.Context, n *node, sent time.Duration, res rueidis.RedisResult,
) {
	replied := res.NonRedisError() == nil
	n.observe(sent, replied)
	if !replied && ended(ctx) != nil {
		d.probe(n, sent)
	}
}

// pings is how many pings a probe sends. The client picks a shared connection at random for each;
// so many reach every one of a few.
const pings = 64

// probe finds out whether the shared connections of n reply. It stands for a direct command that
// was sent at sent and got no reply, since the client does not report it when it comes later. A
// connection replies in order.
func (d *rueidisDriver) probe(n *node, sent time.Duration) {
	c := n.beginProbe(sent)
	if c == nil {
		return
	}
	began := d.Background(func(ctx context.Context) {
		defer n.endProbe(c)
		var wg sync.WaitGroup
		for range pings {
			// with a slot the client picks at random
			ping := d.client.B().Arbitrary("PING").Build().ToPipe().SetSlot("probe")
			wg.Go(func() { d.client.Do(context.WithoutCancel(ctx), ping) })
		}
		over := make(chan struct{})
		go func() {
			wg.Wait()
			close(over)
		}()
		select {
		case <-over:
		case <-ctx.Done():
		}
	})
	if !began {
		n.endProbe(c)
	}
}

// ready is nil if a command may be sent.
func (d *rueidisDriver) ready(ctx context.Context) error {
	if err := d.CheckOpen(); err != nil {
		return err
	}
	if d.stop != nil && atomic.LoadUint32(d.stop) != 0 {
		return driver.Permanent(driver.NotSent(rueidis.ErrClosing))
	}
	return driver.NotSent(ctx.Err())
}

// build makes a command for a shared connection, or as blocking for one of the pool. A cluster
// client's builder panics on keys of several slots.
func (d *rueidisDriver) build(
	blocking bool, keys, args []string, words ...string,
) (cmd rueidis.Completed, err error) {
	defer func() {
		if p := recover(); p != nil {
			got := fmt.Sprintf("%.200q: %v", strings.Join(keys, " "), p)
			err = driver.NotSent(driver.Invalid("keys of a script", got, "keys of one cluster slot"))
		}
	}()
	c := d.client.B().Arbitrary(words...).Keys(keys...).Args(args...)
	if blocking {
		cmd = c.Blocking()
	} else {
		cmd = c.Build().ToPipe()
	}
	if len(keys) == 0 {
		cmd = cmd.SetSlot("") // without a slot a cluster client may choose a replica, and panics in a batch
	}
	return cmd, nil
}

// pipelined returns ctx as the client may see it for a direct command. A lone command with a
// deadline is read under that deadline alone, and would not notice a cancellation before; without
// one it is pipelined, and ends with Done. direct is the number of direct commands under way, with
// this one: commands that are pipelined and end at their deadline alone share the channel of Done.
//
// Where there are many, it lets other goroutines prepare theirs first, so that the client sends
// more of them in one write.
func (n *node) pipelined(ctx context.Context, now time.Time, direct int32) context.Context {
	if direct >= crowd {
		runtime.Gosched()
	}
	if driver.Cancellable(ctx) {
		return undated{ctx}
	}
	if direct > 1 {
		return n.expiries.Share(ctx, now)
	}
	return ctx
}

// answered ends what pipelined began.
func (n *node) answered(within context.Context) {
	n.direct.Add(-1)
	adapter.Unshare(within)
}

type undated struct{ context.Context }

// Deadline implements context.Context.
func (undated) Deadline() (time.Time, bool) { return time.Time{}, false }

// lasting returns ctx as the client sees it for a detached command: it does not end once the
// command is on its way, so that the client returns when the reply comes or the connection breaks,
// and not when the caller leaves.
//
// A client of rueidis itself calls Err right before it sends, once it has a connection. If the
// caller has left by then, Err returns an error, and the command is not sent; otherwise it notes
// that the command may be sent. A wrapper may call Err of a context of its own instead.
//
// The client sends a lone command with a deadline in the goroutine of its caller, and closes the
// connection after the deadline, so that is as far away as its own timeout. Without a deadline it
// would turn the connection to pipelining for good, which only a ctx that can be cancelled needs.
func (n *node) lasting(ctx context.Context, c *call) context.Context {
	switch {
	case ctx.Done() == nil:
		n.allow(c)
		return ctx // nobody leaves before the reply
	case driver.Cancellable(ctx):
		return lasting{undated{ctx}, n, c}
	}
	return lasting{dated{ctx, time.Now().Add(pooledTimeout)}, n, c}
}

// lag is how much longer than its caller a command waits for a connection of the pool, and for its
// reply there. A late reply resolves the outcome.
const lag = time.Second

// patient returns ctx as the client sees it for a command on a connection of its own.
func (n *node) patient(ctx context.Context, c *call) context.Context {
	latest := time.Now().Add(pooledTimeout)
	if deadline, ok := ctx.Deadline(); ok && deadline.Add(lag).Before(latest) {
		latest = deadline.Add(lag)
	}
	return lasting{dated{ctx, latest}, n, c}
}

type dated struct {
	context.Context
	deadline time.Time
}

// Deadline implements context.Context.
func (d dated) Deadline() (time.Time, bool) { return d.deadline, true }

type lasting struct {
	context.Context
	node *node
	call *call
}

// Done implements context.Context.
func (l lasting) Done() <-chan struct{} { return l.call.over }

// Err implements context.Context.
func (l lasting) Err() error {
	err := l.Context.Err()
	if err == nil && !l.node.allow(l.call) {
		err = context.Canceled // ctx ended this moment
	}
	select {
	case <-l.call.over: // the client may have sent the command
		return err
	default:
	}
	if err != nil && l.node.asks {
		err = &unsentError{err}
	}
	return err
}

// unsentError is what a client returns that asked for Err and then did not send.
type unsentError struct{ err error }

func (e *unsentError) Error() string { return e.err.Error() }
func (e *unsentError) Unwrap() error { return e.err }
