package adapter

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"time"
)

var errSilent = fmt.Errorf("driver: a subscriber connection was given up: no SUBSCRIBE was confirmed for %v",
	openTimeout)

// send queues o for the current connection. It does not wait for the write: a frozen server, which
// stops accepting bytes at some point, must not delay Close or a Subscribe whose ctx ends. The
// mutex is held.
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

// await restarts the timer for the next answer to a SUBSCRIBE, or for the next probe, and stops it
// if none is pending and nobody listens. The times of probes are random: many processes connect
// together after a restart of the server. The mutex is held.
func (h *Hub) await() {
	h.heard = time.Now()
	wait := openTimeout
	if len(h.pending) == 0 {
		wait -= rand.N(openTimeout / 10)
	}
	switch idle := len(h.pending) == 0 && (h.feed == nil || len(h.topics) == 0); {
	case idle && h.silence != nil:
		h.silence.Stop()
	case idle:
	case h.silence == nil:
		h.silence = time.AfterFunc(wait, h.probe)
	default:
		h.silence.Reset(wait)
	}
}

// probe is called up to openTimeout after the latest answer. It subscribes once more to a channel,
// to learn whether the connection is half open, and to those refused refusedFor ago. If an answer is
// overdue, it closes the feed: it is half open, or the server is frozen.
func (h *Hub) probe() {
	h.mu.Lock()
	feed := h.feed
	silent := feed != nil && len(h.pending) > 0 && time.Since(h.heard) >= openTimeout
	switch {
	case silent:
		h.broke = cmp.Or(h.broke, errSilent)
	case feed != nil && len(h.pending) == 0:
		for channel, t := range h.topics {
			if h.refusal(channel) == nil && (len(h.pending) == 0 || !h.confirmed(t)) {
				h.send(order{channel: channel})
			}
		}
		h.await() // also if all are refused
	}
	h.mu.Unlock()
	if silent {
		_ = feed.Close() // Next fails, and run opens another feed
	}
}

// write writes the queued commands, in order, until there are no more.
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
			_ = feed.Close() // Next fails, and run opens another feed
			h.mu.Lock()
		}
	}
	h.writing = false
	h.wrote.Broadcast()
}
