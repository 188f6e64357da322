package driver

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"time"
)

// run owns the connection. It ends when the hub is closed, or when nobody is left to reconnect for.
func (h *Hub) run() {
	delay := reopenMin
	for {
		feed, err := h.dial()
		if err == nil {
			opened := time.Now()
			err = h.receive(feed)
			_ = feed.Close() // it is broken
			if time.Since(opened) > reopenMax {
				delay = reopenMin // it lasted: a server that hangs up at once is not dialed at once again
			}
		}
		h.mu.Lock()
		err = h.drop(err)
		failed := unsettled
		if CodeOf(err) != "" && len(h.asked) > 0 { // the server refused one channel; the others are asked for again
			refused := h.asked[0]
			failed = func(channel string, _ *topic) bool { return channel == refused }
		}
		h.fail(failed, err)
		h.asked = nil
		h.await()
		clear(h.pending)
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
	if cause == nil || saysClosed(cause) || CodeOf(err) != "" || !saysClosed(err) {
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
		return nil, NotSent(err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ctx.Err() != nil {
		_ = feed.Close()
		return nil, ErrClosed
	}
	h.feed = feed
	for channel := range h.topics {
		h.send(order{channel: channel})
	}
	return feed, nil
}

// receive hands events on until the connection breaks.
func (h *Hub) receive(feed Feed) error {
	for {
		ev, err := feed.Next()
		if err != nil {
			return err
		}
		h.mu.Lock()
		t := h.topics[ev.Channel]
		switch {
		case ev.Kind == Subscribed:
			// A confirmation that an earlier, since cancelled SUBSCRIBE asked for proves nothing.
			h.pending[ev.Channel]--
			if i := slices.Index(h.asked, ev.Channel); i >= 0 {
				h.asked = slices.Delete(h.asked, i, i+1)
				h.await()
			}
			if h.pending[ev.Channel] > 0 {
				break
			}
			delete(h.pending, ev.Channel)
			if t != nil {
				t.settle()
				t.wakeAll()
			}
		case t != nil:
			t.wakeAll()
		}
		h.mu.Unlock()
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
