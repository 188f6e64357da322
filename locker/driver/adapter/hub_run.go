package adapter

import (
	"context"
	"errors"
	"io"
	"net"
	"time"

	"github.com/holdfast-go/holdfast/locker/driver"
)

// run owns the connection. It ends when the hub is closed, or when nobody is left to reconnect for.
func (h *Hub) run() {
	delay := reopenMin
	for {
		feed, err := h.dial()
		refused := false
		if err == nil {
			opened := time.Now()
			err = h.receive(feed)
			refused = driver.CodeOf(err) != "" // one channel's, which has left the hub; the others are asked for again
			_ = feed.Close()                   // it is broken
			if time.Since(opened) > reopenMax {
				delay = reopenMin // it lasted: a server that hangs up at once is not dialed at once again
			}
		}
		h.mu.Lock()
		err = h.drop(err)
		if !refused {
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

// drop leaves a feed whose Next has failed with err to itself, and returns why it broke: a client closes a connection that it
// cannot write on, and whoever reads hears of the closing alone. Once the feed is closed, no write lasts. The mutex is held.
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

// saysClosed tells whether err says no more than that this process has closed the connection.
func saysClosed(err error) bool {
	return errors.Is(err, net.ErrClosed) || errors.Is(err, io.ErrClosedPipe) || errors.Is(err, context.Canceled)
}

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
	h.feed = feed
	for channel := range h.topics {
		h.send(order{channel: channel})
	}
	return feed, nil
}

// receive hands events on until the connection breaks, or is to be replaced.
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

func (t *topic) wakeAll() {
	for l := range t.listeners {
		select {
		case l.wake <- struct{}{}:
		default: // one wake-up is under way already
		}
	}
}
