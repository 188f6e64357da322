package redigo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/driver/adapter"
)

// shortWait is how long a call may have waited at the gate of a server that answers.
const shortWait = 50 * time.Millisecond

// call takes a connection, uses it once and gives it back. It returns soon after ctx ends, by one
// of two ways. A connection of a prompt pool is used in this goroutine and closed when ctx ends.
// Elsewhere dialing, testing or waiting may ignore ctx, so the call runs in a goroutine that
// outlives ctx. So it does if it waited long at the gate: many callers may give up then, and their
// connections are kept for a moment, for late replies.
func call[T any](
	ctx context.Context, d *redigoDriver, key string, use func(redis.Conn) (T, error),
) (T, error) {
	var zero T
	if err := d.CheckOpen(); err != nil {
		return zero, err
	}
	if err := ctx.Err(); err != nil {
		return zero, driver.NotSent(err)
	}
	gate := d.gate
	if d.gates != nil {
		gate = d.gates.Of(key)
	}
	if endless(ctx) {
		gate = nil
	}
	prompt := true
	if gate != nil && !gate.TryEnter(ctx) {
		began := time.Now()
		if err := gate.Enter(ctx); err != nil {
			return zero, err
		}
		prompt = time.Since(began) < shortWait
	}
	// Without an idle connection it would dial: redis.DialContext does not tell the TLS handshake
	// of ctx.
	if prompt && d.inline.Load() && d.prompt.IdleCount() > 0 {
		if gate != nil {
			defer gate.Leave()
		}
		return run(ctx, d, key, use, nil, 0)
	}
	return detach(ctx, gate, func(begun *atomic.Bool) (T, error) { return run(ctx, d, key, use, begun, lag) })
}

// endless reports whether ctx never ends: its caller waits for a connection as long as the pool
// lets it, and never leaves a call behind.
func endless(ctx context.Context) bool {
	_, bounded := ctx.Deadline()
	return !bounded && !driver.Cancellable(ctx)
}

// detach runs f in a goroutine that outlives ctx if it must. The caller passes on its place at
// gate, if there is one. While f has not set begun and ctx has ended, nothing has been sent or ever
// will be.
func detach[T any](
	ctx context.Context, gate *adapter.Gate, f func(begun *atomic.Bool) (T, error),
) (v T, err error) {
	var begun atomic.Bool
	if gate == nil {
		v, err = adapter.Await(ctx, func() (T, error) { return f(&begun) })
	} else {
		v, err = adapter.AwaitEntered(ctx, gate, func() (T, error) { return f(&begun) })
	}
	if !begun.Load() {
		err = driver.NotSent(err)
	}
	return v, err
}

func run[T any](
	ctx context.Context, d *redigoDriver, key string, use func(redis.Conn) (T, error),
	begun *atomic.Bool, lag time.Duration,
) (T, error) {
	conn, err := d.get(ctx, key)
	if err != nil {
		var zero T
		return zero, unavailable(ctx, err)
	}
	defer conn.Close() //nolint:errcheck // what breaks a connection shows in use; then the pool drops it
	return begin(ctx, d, conn, use, begun, lag)
}

// unavailable is the error of a call for which there is no connection. A pool that was closed,
// which has no error of its own, stays so.
func unavailable(ctx context.Context, err error) error {
	text := err.Error()
	err = driver.NotSent(explain(ctx, err))
	if text == "redigo: get on closed pool" || text == "redisc: closed" {
		err = driver.Permanent(err)
	}
	return err
}

// begin uses conn, which nobody has used yet, until ctx ends and lag has passed. It sets begun,
// unless that is nil, and then looks at ctx for the last time, in this order.
func begin[T any](
	ctx context.Context, d *redigoDriver, conn redis.Conn, use func(redis.Conn) (T, error), begun *atomic.Bool,
	lag time.Duration,
) (T, error) {
	if begun != nil {
		begun.Store(true)
	}
	if err := ctx.Err(); err != nil {
		var zero T
		return zero, driver.NotSent(err)
	}
	w := d.closer.watch(ctx, conn, lag)
	v, err := use(conn)
	w.end()
	return v, explain(ctx, err)
}

// get takes a connection from the pool; one of a cluster is bound to key's node, since by itself it
// would take the digest of a script for the key. Nothing was sent if it fails.
func (d *redigoDriver) get(ctx context.Context, key string) (redis.Conn, error) {
	if p, ok := d.pool.(interface {
		GetContext(context.Context) (redis.Conn, error)
	}); ok {
		conn, err := p.GetContext(ctx)
		if err == nil && d.prompt != nil {
			d.learn.Do(func() { d.inline.Store(closable(conn)) })
		}
		return conn, err
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

// exec sends one command and reads its reply.
func exec(ctx context.Context, conn redis.Conn, command string, args []any) (any, error) {
	if d, ok := readLimit(ctx); ok {
		return redis.DoWithTimeout(conn, d, command, args...)
	}
	return conn.Do(command, args...)
}

// lag is how long a call waits for its reply after its caller has left. A late reply resolves the
// outcome.
const lag = time.Second

// grace is what a read may last longer than ctx. The watcher or adapter.Await ends the call; this
// ends what goes on behind.
const grace = lag + 100*time.Millisecond

// readLimit is never zero: to redigo that is no limit at all.
func readLimit(ctx context.Context) (time.Duration, bool) {
	deadline, ok := ctx.Deadline()
	return max(time.Until(deadline)+grace, grace), ok
}

// explain turns an error reply into a *driver.ServerError and adds ctx's error to what ctx ended.
func explain(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if reply, ok := errors.AsType[redis.Error](err); ok {
		if short, cut := adapter.WithoutArguments(string(reply)); cut {
			err = redis.Error(short)
		}
		return adapter.NewServerError(string(reply), err)
	}
	if end := ended(ctx); end != nil && !errors.Is(err, end) {
		return fmt.Errorf("%w: %w", end, err)
	}
	return err
}

// ended returns why ctx is over. On a busy machine the timer of its deadline may fire after that of
// a connection.
func ended(ctx context.Context) error {
	if at, dated := ctx.Deadline(); dated && !time.Now().Before(at) {
		return cmp.Or(ctx.Err(), context.DeadlineExceeded)
	}
	return ctx.Err()
}

// closable reports whether closeNetwork can close conn.
func closable(conn redis.Conn) bool {
	_, err := redis.DoContext(conn, context.Background(), "") // sends nothing
	return err == nil
}

// closeNetwork closes the network connection below a pool's connection while that is in use, which
// its Close must not do. A receive whose context has ended does so, and nothing else.
func closeNetwork(conn redis.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), 0)
	defer cancel()
	_, _ = redis.ReceiveContext(conn, ctx) // always fails
}
