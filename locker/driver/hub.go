package driver

import (
	"context"
	"slices"
	"sync"
	"time"
)

const (
	reopenMin   = 10 * time.Millisecond
	reopenMax   = time.Second
	openTimeout = 5 * time.Second
)

// Hub shares one subscriber connection among all subscriptions of a driver. It opens the connection at the first
// subscription, counts references per channel, reopens a broken connection (after 10 ms, doubling to 1 s until one lasts),
// subscribes again and wakes every listener then, since a message may have been missed.
//
// Wake-ups may be lost without notice while a connection is half open: a listener keeps a timer of its own.
type Hub struct {
	open func(ctx context.Context) (Feed, error)
	ctx  context.Context // ends at Close
	stop context.CancelFunc
	wg   sync.WaitGroup

	mu      sync.Mutex
	running bool
	feed    Feed // nil while there is no connection
	topics  map[string]*topic
	pending map[string]int // SUBSCRIBE commands for feed that are not confirmed yet, by channel
	asked   []string       // their channels, in the order in which the server answers
	orders  []order        // for feed, not written yet
	writing bool           // a goroutine is writing them

	silence *time.Timer // runs while asked is not empty; nil before
	heard   time.Time   // since when nothing of what was asked for is confirmed
}

// order is a command to the server: to send channel's messages, or to stop.
type order struct {
	channel string
	stop    bool
}

type topic struct {
	listeners map[*listener]struct{}
	settled   chan struct{} // closed at the first confirmation or at failure
	isSettled bool
	err       error // why it failed; the topic has left the hub then
}

// NewHub makes a Hub over open, which dials one connection. ctx bounds the dialing, not the connection.
func NewHub(open func(ctx context.Context) (Feed, error)) *Hub {
	ctx, stop := context.WithCancel(context.Background())
	return &Hub{open: open, ctx: ctx, stop: stop, topics: map[string]*topic{}, pending: map[string]int{}}
}

// Subscribe implements Driver.Subscribe. A connection that cannot be opened, and a channel that the server refuses, is an
// error for those who wait for it; subscriptions that once stood are kept and restored.
func (h *Hub) Subscribe(ctx context.Context, channel string) (Subscription, error) {
	if err := ctx.Err(); err != nil {
		return nil, NotSent(err)
	}
	h.mu.Lock()
	if h.ctx.Err() != nil {
		h.mu.Unlock()
		return nil, ErrClosed
	}
	t := h.topics[channel]
	if t == nil {
		t = &topic{listeners: map[*listener]struct{}{}, settled: make(chan struct{})}
		h.topics[channel] = t
		h.send(order{channel: channel})
	}
	l := &listener{hub: h, channel: channel, topic: t, wake: make(chan struct{}, 1)}
	t.listeners[l] = struct{}{}
	if !h.running {
		h.running = true
		h.wg.Go(h.run)
	}
	h.mu.Unlock()

	select {
	case <-t.settled:
	case <-ctx.Done():
		_ = l.Close()
		return nil, ctx.Err()
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if t.err != nil { // Close sets it on settled topics too
		return nil, t.err
	}
	return l, nil
}

// Close ends every subscription and the connection, and waits for the hub's goroutine.
func (h *Hub) Close() error {
	h.mu.Lock()
	h.stop()
	h.fail(func(string, *topic) bool { return true }, ErrClosed)
	h.orders = nil
	feed := h.feed
	h.mu.Unlock()
	var err error
	if feed != nil {
		err = feed.Close()
	}
	h.wg.Wait()
	return err
}

// send has o written on the present connection, in order. It does not wait: a server that is frozen takes no more bytes
// at some time, which must not hold up a Subscribe whose ctx ends, nor Close. The mutex is held.
func (h *Hub) send(o order) {
	if h.feed == nil {
		return
	}
	if !o.stop {
		h.pending[o.channel]++
		h.asked = append(h.asked, o.channel)
		if len(h.asked) == 1 {
			h.await()
		}
	}
	h.orders = append(h.orders, o)
	if !h.writing {
		h.writing = true
		h.wg.Go(h.write)
	}
}

// await begins to wait for the next confirmation, where there is one to come. The mutex is held.
func (h *Hub) await() {
	switch h.heard = time.Now(); {
	case len(h.asked) == 0 && h.silence != nil:
		h.silence.Stop()
	case len(h.asked) == 0:
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
	silent := feed != nil && len(h.asked) > 0 && time.Since(h.heard) >= openTimeout
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
		if command(o.channel) != nil {
			_ = feed.Close() // Next fails then, and run opens another
		}
		h.mu.Lock()
	}
	h.writing = false
}

// fail takes the topics that match out of the hub and tells those who wait for them.
func (h *Hub) fail(match func(string, *topic) bool, err error) {
	for channel, t := range h.topics {
		if match(channel, t) {
			t.err = err
			delete(h.topics, channel)
			t.settle()
		}
	}
}

func (t *topic) settle() {
	if !t.isSettled {
		t.isSettled = true
		close(t.settled)
	}
}

func unsettled(_ string, t *topic) bool { return !t.isSettled }

// run owns the connection. It ends when the hub is closed, or when nobody is left to reconnect for.
func (h *Hub) run() {
	delay := reopenMin
	for {
		feed, err := h.dial()
		if err == nil {
			opened := time.Now()
			err = h.receive(feed)
			_ = feed.Close() // it is broken; what broke it is in err
			if time.Since(opened) > reopenMax {
				delay = reopenMin // it lasted: a server that hangs up at once is not dialed at once again
			}
		}
		h.mu.Lock()
		failed := unsettled
		if CodeOf(err) != "" && len(h.asked) > 0 { // the server refused one channel; the others are asked for again
			refused := h.asked[0]
			failed = func(channel string, _ *topic) bool { return channel == refused }
		}
		h.fail(failed, err)
		h.feed, h.orders, h.asked = nil, nil, nil
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

type listener struct {
	hub     *Hub
	channel string
	topic   *topic
	wake    chan struct{}
}

func (l *listener) Wake() <-chan struct{} { return l.wake }

// Close leaves the topic; the last one out unsubscribes.
func (l *listener) Close() error {
	h := l.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, ok := l.topic.listeners[l]; !ok {
		return ErrClosed
	}
	delete(l.topic.listeners, l)
	if len(l.topic.listeners) > 0 || h.topics[l.channel] != l.topic {
		return nil
	}
	delete(h.topics, l.channel)
	h.send(order{channel: l.channel, stop: true})
	return nil
}
