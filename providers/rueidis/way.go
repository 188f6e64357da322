package rueidis

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/locker/driver"
)

// way is how a command goes to the server.
type way uint8

const (
	// straight: over the connections that rueidis shares among all commands.
	straight way = iota
	// watched: the same, in a goroutine. A client that connects does not look at ctx, and one call waits for what another
	// dials under a ctx of its own.
	watched
	// aside: over a connection of the client's pool that the command has for itself, and that the client closes if it gives
	// the command up. A shared one it keeps: what is sent on a dead one is lost until the client's own ping has failed.
	aside
)

const (
	warm  = 64               // answers in a row that make it likely that all shared connections stand
	avoid = 10 * time.Second // how long the shared connections are not used after one did not answer in time
	lanes = 8                // commands of a driver that go aside at once
	waits = 64               // scripts of a driver with a WAIT behind them at once

	few = 8 // commands of a batch for a cluster that may go aside

	lapse = 50 * time.Millisecond // how long a batch waits for the client to notice that its context has ended
)

// health is what the last commands tell of the shared connections.
type health struct {
	many    bool                      // a cluster: answers over one connection say nothing of another node's
	answers atomic.Int32              // in a row, no more than warm
	dead    atomic.Pointer[time.Time] // until when to take one for dead
	closing atomic.Bool               // the last error was ErrClosing
}

// way returns the best one for now.
func (h *health) way() way {
	if until := h.dead.Load(); until != nil {
		if time.Now().Before(*until) {
			return aside
		}
		h.dead.CompareAndSwap(until, nil)
	}
	if h.many || h.answers.Load() < warm {
		return watched
	}
	return straight
}

// batchWay is way for n commands at once. In a cluster only a few go aside, one by one: the client panics where it is to follow
// ASK with a batch on connections of their own (v1.0.79: mux.DoMulti marks its ASKING as blocking, and askingMulti does not
// know it again). What a dead shared connection loses of a larger batch has an unknown outcome, and is repeated by itself.
func (h *health) batchWay(n int) way {
	if w := h.way(); w != aside || !h.many || n <= few {
		return w
	}
	return watched
}

// answered notes a reply.
func (h *health) answered() {
	if h.answers.Load() < warm {
		h.answers.Add(1)
	}
	if h.closing.Load() {
		h.closing.Store(false)
	}
}

// unanswered notes that no reply came while ctx lasted, or at all.
func (h *health) unanswered(ctx context.Context) {
	h.answers.Store(0)
	if errors.Is(ended(ctx), context.DeadlineExceeded) {
		until := time.Now().Add(avoid)
		h.dead.Store(&until)
	}
}

// do sends one command.
func (a *adapter) do(ctx context.Context, w way, cmd rueidis.Completed) rueidis.RedisResult {
	if w == straight {
		return a.client.Do(shown(ctx), cmd)
	}
	res, err := await(ctx, ctx, a, w, func(ctx context.Context) rueidis.RedisResult { return a.client.Do(ctx, cmd) })
	if err != nil {
		return rueidis.NewErrorResult(err)
	}
	return res
}

// doMulti sends several commands in one round trip.
func (a *adapter) doMulti(ctx context.Context, w way, cmds rueidis.Commands) []rueidis.RedisResult {
	if w == straight {
		return a.client.DoMulti(shown(ctx), cmds...)
	}
	waiting := ctx
	if a.health.many {
		var stop func()
		waiting, stop = later(ctx)
		defer stop()
	}
	send := func(ctx context.Context) []rueidis.RedisResult { return a.client.DoMulti(ctx, cmds...) }
	if w == aside && a.health.many {
		send = func(ctx context.Context) []rueidis.RedisResult { return a.each(ctx, cmds) }
	}
	res, err := await(waiting, ctx, a, w, send)
	if err != nil {
		if over := ended(ctx); over != nil && !errors.Is(err, driver.ErrNotSent) {
			err = over
		}
		return slices.Repeat([]rueidis.RedisResult{rueidis.NewErrorResult(err)}, len(cmds))
	}
	return res
}

// each sends commands at once, each by itself.
func (a *adapter) each(ctx context.Context, cmds rueidis.Commands) []rueidis.RedisResult {
	results := make([]rueidis.RedisResult, len(cmds))
	var wg sync.WaitGroup
	for i, cmd := range cmds {
		wg.Go(func() { results[i] = a.client.Do(ctx, cmd) })
	}
	wg.Wait()
	return results
}

// later returns a context that ends a moment after ctx: when ctx ends, the client tells which nodes of a cluster have answered.
func later(ctx context.Context) (context.Context, func()) {
	waiting, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		timer := time.NewTimer(lapse)
		defer timer.Stop()
		select {
		case <-timer.C:
			cancel()
		case <-waiting.Done():
		}
	})
	return waiting, func() { stop(); cancel() }
}

// await returns soon after waiting ends, while call, which gets ctx, is finished behind.
func await[T any](waiting, ctx context.Context, a *adapter, w way, call func(context.Context) T) (T, error) {
	return driver.Await(waiting, func() (T, error) {
		if w != aside {
			return call(shown(ctx)), nil
		}
		ctx, cancel := context.WithTimeout(ctx, avoid) // on a connection of its own a command has no other timeout
		defer cancel()
		select {
		case a.lanes <- struct{}{}:
			defer func() { <-a.lanes }()
			return call(ctx), nil
		case <-ctx.Done():
			var none T
			return none, driver.NotSent(ctx.Err())
		}
	})
}

// shown returns ctx as the client may see it on a shared connection. A lone command with a deadline is read under that
// deadline alone, and would not notice a cancellation before; without one it is pipelined, and ends with Done.
func shown(ctx context.Context) context.Context {
	if driver.Cancellable(ctx) {
		return undated{ctx}
	}
	return ctx
}

type undated struct{ context.Context }

// Deadline implements context.Context.
func (undated) Deadline() (time.Time, bool) { return time.Time{}, false }
