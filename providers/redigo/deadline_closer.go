package redigo

import (
	"context"
	"sync"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/holdfast-go/holdfast/locker/driver"
)

// lookEvery is how often a deadlineCloser looks for contexts ended before their deadlines.
const lookEvery = time.Second

// deadlineCloser closes connections at the deadlines of calls, with one timer for all calls of a
// driver. The context of a flight is not cancellable, but ends once all callers have left: its
// connection is closed within lookEvery. The zero deadlineCloser is ready to use.
type deadlineCloser struct {
	mu      sync.Mutex
	watched map[*watcher]struct{}
	timer   *time.Timer
	alarm   time.Time // when timer fires; zero: it is not set
}

// watcher closes a connection when ctx ends, so that reads and writes return.
type watcher struct {
	closer *deadlineCloser // for a deadline alone
	ctx    context.Context //nolint:containedctx // set with closer
	at     time.Time       // when it closes the connection then
	stop   func() bool     // for a cancellable ctx

	mu   sync.Mutex
	conn redis.Conn // nil once over
}

func (c *deadlineCloser) watch(ctx context.Context, conn redis.Conn) *watcher {
	w := &watcher{conn: conn}
	if driver.Cancellable(ctx) {
		w.stop = context.AfterFunc(ctx, w.expire)
	} else if deadline, ok := ctx.Deadline(); ok {
		w.closer, w.ctx, w.at = c, ctx, deadline
		c.add(w)
	}
	return w
}

func (w *watcher) expire() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.conn != nil {
		closeNetwork(w.conn)
	}
}

// end returns once the connection is the caller's alone.
func (w *watcher) end() {
	if w.closer != nil && w.closer.remove(w) || w.stop != nil && w.stop() {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.conn = nil
}

func (c *deadlineCloser) add(w *watcher) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.watched == nil {
		c.watched = map[*watcher]struct{}{}
	}
	c.watched[w] = struct{}{}
	c.arm(w.at)
}

// remove reports whether w was there: it has not begun to close its connection, and never will.
func (c *deadlineCloser) remove(w *watcher) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, ok := c.watched[w]
	delete(c.watched, w)
	return ok
}

// arm sets the timer to at or the next look, unless it fires sooner: firing for nothing now and
// then costs less than setting it for each call. mu is held.
func (c *deadlineCloser) arm(at time.Time) {
	if !c.alarm.IsZero() && !at.Before(c.alarm) {
		return
	}
	now := time.Now()
	in := min(at.Sub(now), lookEvery)
	if c.timer == nil {
		c.timer = time.AfterFunc(in, c.tick)
	} else {
		c.timer.Reset(in)
	}
	c.alarm = now.Add(in)
}

// tick closes the connections at their deadlines, or of an ended context.
func (c *deadlineCloser) tick() {
	c.mu.Lock()
	defer c.mu.Unlock()
	now, next := time.Now(), time.Time{}
	for w := range c.watched {
		switch {
		case !now.Before(w.at) || w.ctx.Err() != nil:
			delete(c.watched, w)
			go w.expire() // closing a TLS connection may take a while
		case next.IsZero() || w.at.Before(next):
			next = w.at
		}
	}
	c.alarm = time.Time{}
	if !next.IsZero() {
		c.arm(next)
	}
}
