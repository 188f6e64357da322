package adapter

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/locker/driver"
)

const (
	// settleTimeout is how long Subscribe waits for the reply to SSUBSCRIBE after that to SUBSCRIBE.
	settleTimeout = time.Second
	// recheckEvery is how often all channels are checked for being subscribed at the masters of
	// their slots: a master keeps its subscriptions when it becomes a replica.
	recheckEvery = time.Second
	// idleTimeout is how long a connection without a channel stays open.
	idleTimeout = 30 * time.Second
)

var errSlotMoved = errors.New("driver: the node has given the channel's slot away")

// Shards says how a [Hub] reaches the masters of a cluster for sharded pub/sub.
type Shards struct {
	// Master returns a name for the master of channel's slot, such as its address. The Hub calls it
	// from one goroutine at a time, about once a second for each channel. It answers from a map of
	// the slots in memory, and refreshes it every few seconds in the background. Only if the map is
	// older than fresh, it asks the cluster at once, or has the client ask. If the client cannot
	// distinguish masters, the error matches errors.ErrUnsupported.
	Master func(ctx context.Context, channel string, fresh time.Time) (string, error)
	// Open opens a connection to the master of that name, which has the slot of channel. The Feed
	// sends SSUBSCRIBE and SUNSUBSCRIBE, and reports every "sunsubscribe".
	Open func(ctx context.Context, master, channel string) (Feed, error)
}

// Delivery implements driver.Driver. With [Shards] it returns DeliverySharded while the channel is
// subscribed at its master; for a channel without a subscription it depends on the last reply to an
// SSUBSCRIBE of any channel. Without it returns DeliveryPlain.
func (h *Hub) Delivery(channel string) driver.Delivery {
	if h.shards != nil && h.shards.reaches(channel) {
		return driver.DeliverySharded
	}
	return driver.DeliveryPlain
}

// observer is notified of the channels of a hub for one master, under the mutex of the hub.
type observer interface {
	confirmed(h *Hub, channel string)
	woken(h *Hub, channel string)           // by a message
	lost(h *Hub, channel string, err error) // it has left the hub
}

// add adds a channel to a hub for one master.
func (h *Hub) add(channel string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.topics[channel] != nil || h.ctx.Err() != nil {
		return
	}
	h.topics[channel] = &topic{settled: make(chan struct{})}
	h.send(order{channel: channel})
	h.start()
}

// remove is the opposite of add. The observer is no longer notified of the channel.
func (h *Hub) remove(channel string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.topics[channel] == nil {
		return
	}
	delete(h.topics, channel)
	h.send(order{channel: channel, stop: true})
}

// shards are the subscriptions of a Hub by SSUBSCRIBE. One goroutine, run, adds channels to the
// hubs of the masters, and removes them. The mutex of a hub is locked before that of shards.
type shards struct {
	cfg  Shards
	ctx  context.Context // ends at close
	stop context.CancelFunc
	wg   sync.WaitGroup
	kick chan struct{} // run has something to do

	mu       sync.Mutex
	routing  bool // run is running
	channels map[string]*shardChannel
	todo     map[string]struct{} // channels to add or remove
	masters  map[string]*master
	known    bool      // the last SSUBSCRIBE was confirmed
	lacking  time.Time // until then no SSUBSCRIBE is sent: the servers do not know or allow it

	paused time.Time // until then Master is not called for a new channel; only run uses it
}

// shardChannel is a channel with listeners. It is removed once it has none.
type shardChannel struct {
	wakes     map[chan struct{}]struct{} // the listeners'
	master    string                     // has it in its hub; "": none
	confirmed bool                       // by master
	since     time.Time                  // when confirmed was set
	settled   chan struct{}              // closed once it is confirmed, or will not be soon
	isSettled bool

	due   time.Time // it is not added before
	delay time.Duration
	fresh time.Time // how new the knowledge of its master must be
}

// master is a master of the cluster, with the hub of the connection to it.
type master struct {
	hub  *Hub
	idle time.Time // since when it has no channel; zero: it has one
}
