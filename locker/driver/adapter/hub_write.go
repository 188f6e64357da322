package adapter

import (
	"cmp"
	"fmt"
	"time"
)

var errSilent = fmt.Errorf("driver: a subscriber connection was given up: no SUBSCRIBE was confirmed for %v", openTimeout)

// send has o written on the present connection, in order. It does not wait: a server that is frozen takes no more bytes
// at some time, which must not hold up a Subscribe whose ctx ends, nor Close. The mutex is held.
func (h *Hub) send(o order) {
	if h.feed == nil {
		return
	}
	h.asked = append(h.asked, o)
	if !o.stop {
		h.pending[o.channel]++
		if len(h.pending) == 1 && h.pending[o.channel] == 1 {
			h.await()
		}
	}
	h.orders = append(h.orders, o)
	if !h.writing {
		h.writing = true
		h.wg.Go(h.write)
	}
}

// await begins to wait for the next answer to a SUBSCRIBE, where there is one to come. The mutex is held.
func (h *Hub) await() {
	switch h.heard = time.Now(); {
	case len(h.pending) == 0 && h.silence != nil:
		h.silence.Stop()
	case len(h.pending) == 0:
	case h.silence == nil:
		h.silence = time.AfterFunc(openTimeout, h.giveUp)
	default:
		h.silence.Reset(openTimeout)
	}
}

// giveUp closes a feed that has not confirmed a SUBSCRIBE in time: the connection is half open, or the server frozen.
func (h *Hub) giveUp() {
	h.mu.Lock()
	feed := h.feed
	silent := feed != nil && len(h.pending) > 0 && time.Since(h.heard) >= openTimeout
	if silent {
		h.broke = cmp.Or(h.broke, errSilent)
	}
	h.mu.Unlock()
	if silent {
		_ = feed.Close() // Next fails then, and run opens another
	}
}

// write writes what is ordered until there is no more.
func (h *Hub) write() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for len(h.orders) > 0 {
		o, feed := h.orders[0], h.feed
		h.orders = h.orders[1:]
		h.mu.Unlock()
		command := feed.Subscribe
		if o.stop {
			command = feed.Unsubscribe
		}
		err := command(o.channel)
		h.mu.Lock()
		if err != nil {
			h.broke = cmp.Or(h.broke, err)
			h.mu.Unlock()
			_ = feed.Close() // Next fails then, and run opens another
			h.mu.Lock()
		}
	}
	h.writing = false
	h.wrote.Broadcast()
}
