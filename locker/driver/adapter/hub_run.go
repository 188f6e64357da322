package adapter

import (
	"context"
	"errors"
	"io"
	"net"
	"time"

	"github.com/holdfast-go/holdfast/locker/driver"
)

// run opens and reads connections. It ends when the hub is closed, or when a connection has broken
// and there are no topics to reconnect for.
func (h *Hub) run() {
	delay := reopenMin
	for {
		feed, err := h.dial()
		refused, lasted := false, false
		if err == nil {
			opened := time.Now()
			err = h.receive(feed)
			refused = driver.CodeOf(err) != "" // it concerned one channel, and the next connection has the others
			_ = feed.Close()                   // it is broken
			lasted = time.Since(opened) >= min(2*delay, reopenMax)
		}
		h.mu.Lock()
		if lasted && h.proven {
			delay = reopenMin // a server that only hangs up is dialed ever more slowly
		}
		err = h.drop(err)
		switch {
		case h.owner != nil:
			h.fail(all, err) // another master may have their slots now
		case !refused:
			h.fail(unsettled, err)
		}
		h.asked, h.leftover = nil, 0
		clear(h.pending)
		h.await()
		if h.ctx.Err() != nil || len(h.topics) == 0 {
			h.running = false
			h.mu.Unlock()
			return
		}
		h.mu.Unlock()
		select {
		case <-time.After(delay):
		case <-h.ctx.Done():
		}
		delay = min(2*delay, reopenMax)
	}
}

// drop detaches the hub from a feed whose Next has failed with err, and returns why the feed broke:
// after a failed write the hub closes the feed, and Next reports only the closing. It waits for
// writes in progress: they end since the feed is closed. The mutex is held.
func (h *Hub) drop(err error) error {
	h.feed, h.orders = nil, nil
	for h.writing {
		h.wrote.Wait()
	}
	cause := h.broke
	h.broke = nil
	if cause == nil || saysClosed(cause) || driver.CodeOf(err) != "" || !saysClosed(err) {
		return err
	}
	return cause
}

// saysClosed reports whether err says only that this process has closed the connection.
func saysClosed(err error) bool {
	return errors.Is(err, net.ErrClosed) || errors.Is(err, io.ErrClosedPipe) || errors.Is(err, context.Canceled)
}

// dial opens a feed and subscribes to all topics on it, except refused ones.
func (h *Hub) dial() (Feed, error) {
	ctx, cancel := context.WithTimeout(h.ctx, openTimeout)
	defer cancel()
	feed, err := h.open(ctx)
	if err != nil {
		return nil, driver.NotSent(err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ctx.Err() != nil {
		_ = feed.Close()
		return nil, driver.ErrClosed
	}
	h.feed, h.proven = feed, false
	h.opened++
	for channel := range h.topics {
		if h.refusal(channel) == nil {
			h.send(order{channel: channel})
		}
	}
	h.await()
	return feed, nil
}

// receive handles events until the connection breaks or must be replaced.
func (h *Hub) receive(feed Feed) error {
	for {
		ev, err := feed.Next()
		h.mu.Lock()
		if err != nil {
			h.blame(err)
		} else {
			err = h.handle(ev)
		}
		h.mu.Unlock()
		if err != nil {
			return err
		}
	}
}

// wakeAll wakes every listener of t.
func (t *topic) wakeAll() {
	for l := range t.listeners {
		select {
		case l.wake <- struct{}{}:
		default: // it has a wake-up already
		}
	}
}
