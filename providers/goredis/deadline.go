package goredis

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/driver/adapter"
)

// call runs f at the gate of key's server, and returns soon after ctx ends. go-redis waits for a
// connection until ctx ends, but for a reply until ctx's deadline at best: a call that can be
// cancelled needs a goroutine. f sends under the context that it gets. What it sends is tracked by
// sent: if the caller leaves before it was sent, it is never executed.
func call[T any](
	ctx context.Context, d *goredisDriver, key string, sent *delivery,
	f func(sending context.Context) (T, error),
) (T, error) {
	began := time.Now()
	v, err := callAtGate(ctx, d, key, sent, f)
	if err != nil && errors.Is(err, driver.ErrNotSent) && (late(ctx) || ctx.Err() != nil) {
		err = d.dials.explain(err, began)
	}
	return v, err
}

func callAtGate[T any](
	ctx context.Context, d *goredisDriver, key string, sent *delivery,
	f func(sending context.Context) (T, error),
) (T, error) {
	var zero T
	if err := d.CheckOpen(); err != nil {
		return zero, err
	}
	if err := ctx.Err(); err != nil {
		return zero, driver.NotSent(err)
	}
	if endless(ctx) {
		return f(ctx)
	}
	if !driver.Cancellable(ctx) && d.obeysDeadline {
		g := d.servers.gate(ctx, key)
		if err := g.Enter(ctx); err != nil {
			return zero, err
		}
		defer g.Leave()
		return f(ctx)
	}
	sending := ctx
	if d.obeysDeadline {
		sending = patient{ctx}
	}
	var v T
	var err error
	if g := d.servers.knownGate(key); g != nil {
		v, err = adapter.AwaitGated(ctx, g, func() (T, error) { return f(sending) })
	} else {
		v, err = adapter.Await(ctx, func() (T, error) {
			g := d.servers.gate(ctx, key) // asks the cluster for its nodes
			if err := g.Enter(ctx); err != nil {
				return zero, err
			}
			defer g.Leave()
			return f(sending)
		})
	}
	if _, left := errors.AsType[*driver.PendingError](err); left && sent.abandon() {
		err = driver.NotSent(ctx.Err())
	}
	return v, err
}

// endless reports whether ctx never ends: its caller waits for a connection as long as the client's
// options say, and never leaves a call behind.
func endless(ctx context.Context) bool {
	_, bounded := ctx.Deadline()
	return !bounded && !driver.Cancellable(ctx)
}

// together is call for a batch, which may go to several nodes.
func together[T any](ctx context.Context, d *goredisDriver, f func() (T, error)) (T, error) {
	var zero T
	if err := d.CheckOpen(); err != nil {
		return zero, err
	}
	if err := ctx.Err(); err != nil {
		return zero, driver.NotSent(err)
	}
	if endless(ctx) {
		return f()
	}
	if !driver.Cancellable(ctx) && d.obeysDeadline {
		if err := d.servers.batches.Enter(ctx); err != nil {
			return zero, err
		}
		defer d.servers.batches.Leave()
		return f()
	}
	return adapter.AwaitGated(ctx, d.servers.batches, f)
}

// lag is how long a call waits for its reply after its caller's deadline. A late reply resolves the
// outcome, and the connection is kept.
const lag = time.Second

// patient is the context that the client sees of a call whose caller can leave. Its Deadline is
// later by lag, for the reply. Its Done is the caller's, for the wait for a connection.
type patient struct{ context.Context }

// Deadline implements context.Context.
func (p patient) Deadline() (time.Time, bool) {
	deadline, ok := p.Context.Deadline()
	return deadline.Add(lag), ok
}

// obeysDeadline reports whether client ends a call by its context's deadline. With negative
// timeouts it sets no deadlines, and a ReadOnly cluster client asks a server for the list of
// commands, whatever the context says.
func obeysDeadline(client redis.UniversalClient) bool {
	switch c := client.(type) {
	case *redis.Client:
		o := c.Options()
		return o.ContextTimeoutEnabled && o.ReadTimeout >= 0 && o.WriteTimeout >= 0
	case *redis.ClusterClient:
		o := c.Options()
		return o.ContextTimeoutEnabled && o.ReadTimeout >= 0 && o.WriteTimeout >= 0 && !o.ReadOnly
	}
	return false
}
