package adapter

import (
	"context"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/locker/driver"
)

const (
	reopenMin   = 10 * time.Millisecond
	reopenMax   = time.Second
	openTimeout = 5 * time.Second

	// refusedFor is how long a refused channel is not asked for again.
	refusedFor = time.Minute
	// maxLeftover is how many refusals of UNSUBSCRIBE a connection may have before it is replaced.
	maxLeftover = 1000
)

// Hub shares one subscriber connection among all subscriptions of a driver. It opens the connection
// for the first subscription and counts references per channel. If the connection breaks, it opens
// another one, subscribes again and wakes every listener, since a message may have been missed. The
// pause before that is 10 ms. It doubles to 1 s until a connection confirms a SUBSCRIBE, and lasts
// for twice the next pause.
//
// A final refusal (not [driver.Transient]), such as one by the ACL, affects only its own channel:
// the connection stays open, and for one minute Subscribe returns the refusal at once. If the server
// refuses a confirmed subscription on a later connection, as after a change of the ACL, the hub
// sends SUBSCRIBE again about once a minute. Each answer wakes the listeners: they may have missed a
// message.
//
// While a connection is half open, wake-ups are lost. The hub notices within ten seconds: about
// five seconds after the latest answer it subscribes again to one of its channels, and without an
// answer within five more it opens another connection. So a listener needs a timer of its own. A
// refusal is an answer too: it ends the subscription only if the slot has moved.
type Hub struct {
	open   func(ctx context.Context) (Feed, error)
	shards *shards         // nil: PUBLISH reaches all subscriptions
	owner  observer        // of a hub for one master, without listeners; nil for others
	ctx    context.Context // ends at Close
	stop   context.CancelFunc
	wg     sync.WaitGroup

	mu      sync.Mutex
	running bool
	feed    Feed // nil while there is no connection
	opened  int  // how many connections were opened
	proven  bool // the server has confirmed a SUBSCRIBE on feed
	topics  map[string]*topic
	pending map[string]int // unanswered SUBSCRIBE commands for feed, by channel
	asked   []order        // the commands for feed without a known answer, in order
	orders  []order        // for feed, not written yet
	writing bool           // a goroutine is writing them

	leftover int // UNSUBSCRIBE commands refused on feed
	refused  map[string]refusedChannel
	sweep    time.Time // when to remove old entries of refused

	wrote sync.Cond // broadcast as writing ends
	broke error     // why the hub closed feed, if it did

	silence *time.Timer // runs while pending or topics is not empty; nil before
	heard   time.Time   // when a SUBSCRIBE was answered last, or the first one was sent
}

// refusedChannel is the server's refusal of a channel.
type refusedChannel struct {
	err   error
	until time.Time // no SUBSCRIBE before
}

// order is a command to the server: SUBSCRIBE, or UNSUBSCRIBE if stop is set.
type order struct {
	channel string
	stop    bool
}

// topic is a channel that the hub is, or wants to be, subscribed to.
type topic struct {
	listeners map[*listener]struct{}
	on        int           // the value of opened when a connection confirmed it last; 0: none did
	settled   chan struct{} // closed at the first confirmation or at failure
	isSettled bool
	err       error // why it failed; the topic has left the hub then
}

// NewHub returns a Hub that opens its connection with open. The ctx of open bounds the dialing, not
// the connection. shards is for a cluster whose client reaches each master; nil for others.
//
// With shards, a subscription also receives the messages of SPUBLISH, over a connection to the
// master of its channel's slot (https://redis.io/docs/latest/develop/pubsub/#sharded-pubsub). When
// the slot moves or the master fails, it is made again at the new master. If the servers do not
// know SSUBSCRIBE (before Redis 7.0), or refuse it, a subscription receives only messages of
// PUBLISH. SSUBSCRIBE is tried again after a minute.
func NewHub(open func(ctx context.Context) (Feed, error), shards *Shards) *Hub {
	h := newHub(open, nil)
	if shards != nil {
		h.shards = newShards(*shards)
	}
	return h
}

func newHub(open func(ctx context.Context) (Feed, error), owner observer) *Hub {
	ctx, stop := context.WithCancel(context.Background())
	h := &Hub{
		open: open, owner: owner, ctx: ctx, stop: stop,
		topics: map[string]*topic{}, pending: map[string]int{}, refused: map[string]refusedChannel{},
	}
	h.wrote.L = &h.mu
	return h
}

// Subscribe implements Driver.Subscribe. It returns an error if the connection cannot be opened, or
// if the server refuses the channel. A confirmed subscription is restored on every later
// connection. If the server refuses that, it is restored about a minute after the server allows it.
func (h *Hub) Subscribe(ctx context.Context, channel string) (driver.Subscription, error) {
	wake := make(chan struct{}, 1)
	if h.shards == nil {
		return h.subscribe(ctx, channel, wake)
	}
	return h.shards.subscribe(ctx, h, channel, wake)
}

// subscribe is Subscribe on the hub's own connection.
func (h *Hub) subscribe(ctx context.Context, channel string, wake chan struct{}) (driver.Subscription, error) {
	if err := ctx.Err(); err != nil {
		return nil, driver.NotSent(err)
	}
	h.mu.Lock()
	if h.ctx.Err() != nil {
		h.mu.Unlock()
		return nil, driver.ErrClosed
	}
	if err := h.refusal(channel); err != nil {
		h.mu.Unlock()
		return nil, err
	}
	t := h.topics[channel]
	if t == nil {
		t = &topic{listeners: map[*listener]struct{}{}, settled: make(chan struct{})}
		h.topics[channel] = t
		h.send(order{channel: channel})
	}
	l := &listener{hub: h, channel: channel, topic: t, wake: wake}
	t.listeners[l] = struct{}{}
	h.start()
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

// start begins to open a connection, unless there is one. The mutex is held.
func (h *Hub) start() {
	if !h.running {
		h.running = true
		h.wg.Go(h.run)
	}
}

// Close ends all subscriptions, closes the connections, and waits for the hub's goroutines.
func (h *Hub) Close() error {
	if h.shards != nil {
		h.shards.close()
	}
	h.mu.Lock()
	h.stop()
	h.fail(all, driver.ErrClosed)
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

// fail removes the matching topics from the hub, with err for their waiting callers.
func (h *Hub) fail(match func(string, *topic) bool, err error) {
	for channel, t := range h.topics {
		if match(channel, t) {
			t.err = err
			delete(h.topics, channel)
			t.settle()
			if h.owner != nil {
				h.owner.lost(h, channel, err)
			}
		}
	}
}

// settle ends the waiting for the first answer about t.
func (t *topic) settle() {
	if !t.isSettled {
		t.isSettled = true
		close(t.settled)
	}
}

func unsettled(_ string, t *topic) bool { return !t.isSettled }

func all(string, *topic) bool { return true }

// listener is a driver.Subscription to a topic.
type listener struct {
	hub     *Hub
	channel string
	topic   *topic
	wake    chan struct{}
}

func (l *listener) Wake() <-chan struct{} { return l.wake }

// Close implements driver.Subscription. The last listener of a topic unsubscribes.
func (l *listener) Close() error {
	h := l.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, ok := l.topic.listeners[l]; !ok {
		return driver.ErrClosed
	}
	delete(l.topic.listeners, l)
	if len(l.topic.listeners) > 0 || h.topics[l.channel] != l.topic {
		return nil
	}
	delete(h.topics, l.channel)
	h.send(order{channel: l.channel, stop: true})
	if len(h.topics)+len(h.pending) == 0 {
		h.await()
	}
	return nil
}
