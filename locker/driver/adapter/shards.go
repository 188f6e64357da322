package adapter

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/locker/driver"
)

const (
	// settleTimeout is how long Subscribe waits for the reply to SSUBSCRIBE once it has that to
	// SUBSCRIBE.
	settleTimeout = time.Second
	// recheckEvery is how often all channels are checked for being subscribed at the masters of
	// their slots. It is needed because a master that becomes a replica keeps its subscriptions.
	recheckEvery = time.Second
	// idleTimeout is how long a connection without a channel stays open.
	idleTimeout = 30 * time.Second
)

var errSlotMoved = errors.New("driver: the node has given the channel's slot away")

// Shards says how a [Hub] reaches the masters of a cluster for sharded pub/sub.
type Shards struct {
	// Master returns a name for the master that has the slot of channel, such as its address. The
	// Hub calls it from one goroutine at a time, about once a second for each channel. It answers
	// from a map of the slots in memory, which it refreshes every few seconds in the background.
	// Only if the map is older than fresh, it asks the cluster at once, or has the client ask. If
	// the client cannot tell masters apart, the error matches errors.ErrUnsupported.
	Master func(ctx context.Context, channel string, fresh time.Time) (string, error)
	// Open opens a connection to the master with that name, which has the slot of channel. The Feed
	// sends SSUBSCRIBE and SUNSUBSCRIBE, and reports every Unsubscribed.
	Open func(ctx context.Context, master, channel string) (Feed, error)
}

// NewShardedHub returns a Hub for a cluster. A subscription receives what PUBLISH sends over a
// connection that open opens, as with [NewHub], and what SPUBLISH sends over a connection to the
// master that has the slot of its channel
// (https://redis.io/docs/latest/develop/pubsub/#sharded-pubsub). When the slot moves or the master
// fails, it is made again at the new master.
//
// Where the servers do not know SSUBSCRIBE (before Redis 7.0), or refuse it, a subscription
// receives only what PUBLISH sends. SSUBSCRIBE is tried again after a minute.
func NewShardedHub(open func(ctx context.Context) (Feed, error), s Shards) *Hub {
	h := NewHub(open)
	h.shards = newShards(s)
	return h
}

// Delivery implements driver.Deliverer for a Hub of NewShardedHub: DeliverySharded while the
// channel is subscribed at its master. For a channel without a subscription it depends on the last
// reply to an SSUBSCRIBE of any channel. For another Hub it returns DeliveryPlain.
func (h *Hub) Delivery(channel string) driver.Delivery {
	if h.shards != nil && h.shards.reaches(channel) {
		return driver.DeliverySharded
	}
	return driver.DeliveryPlain
}

// observer is told what happens to the channels of a hub for one master, under the mutex of the
// hub.
type observer interface {
	confirmed(h *Hub, channel string)
	woken(h *Hub, channel string)           // by a message
	lost(h *Hub, channel string, err error) // it has left the hub
}

// add adds a channel to a hub for one master. The hub's observer is told what happens to it.
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

// remove is the opposite of add. The observer is told no more of the channel.
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
	todo     map[string]struct{} // channels that are to be added or removed
	masters  map[string]*master
	known    bool      // the last SSUBSCRIBE was confirmed
	lacking  time.Time // until then no SSUBSCRIBE is sent: the servers do not know or allow it

	paused time.Time // until then Master is not called for a new channel; only run uses it
}

// shardChannel is a channel with listeners. It is removed once it has none.
type shardChannel struct {
	wakes     map[chan struct{}]struct{} // the listeners'
	master    string                     // to whose hub it was added; "": none
	confirmed bool                       // by that master
	since     time.Time                  // when that was
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

func newShards(cfg Shards) *shards {
	s := &shards{
		cfg: cfg, kick: make(chan struct{}, 1),
		channels: map[string]*shardChannel{}, todo: map[string]struct{}{}, masters: map[string]*master{},
	}
	s.ctx, s.stop = context.WithCancel(context.Background())
	return s
}

// subscribe subscribes to a channel by both SUBSCRIBE and SSUBSCRIBE. SUBSCRIBE decides whether it
// succeeds.
func (s *shards) subscribe(ctx context.Context, plain *Hub, channel string, wake chan struct{}) (driver.Subscription, error) {
	settled := s.listen(channel, wake)
	sub, err := plain.subscribe(ctx, channel, wake)
	if err != nil {
		s.leave(channel, wake)
		return nil, err
	}
	both := &shardSubscription{sub, s, channel, wake}
	timer := time.NewTimer(settleTimeout)
	defer timer.Stop()
	select {
	case <-settled:
	case <-timer.C:
	case <-ctx.Done():
		_ = both.Close()
		return nil, ctx.Err()
	}
	if s.ctx.Err() != nil {
		return nil, driver.ErrClosed
	}
	return both, nil
}

// shardSubscription is a driver.Subscription by both SUBSCRIBE and SSUBSCRIBE.
type shardSubscription struct {
	driver.Subscription
	shards  *shards
	channel string
	wake    chan struct{}
}

// Close implements driver.Subscription.
func (l *shardSubscription) Close() error {
	l.shards.leave(l.channel, l.wake)
	return l.Subscription.Close()
}

// listen adds a listener to a channel. The Go channel that it returns is closed once SSUBSCRIBE has
// succeeded or is known not to succeed soon.
func (s *shards) listen(channel string, wake chan struct{}) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.channels[channel]
	if c == nil {
		c = &shardChannel{wakes: map[chan struct{}]struct{}{}, settled: make(chan struct{}), delay: reopenMin}
		s.channels[channel] = c
		if time.Now().Before(s.lacking) {
			c.due = s.lacking
			c.settle()
		}
		s.route(channel)
	}
	c.wakes[wake] = struct{}{}
	return c.settled
}

// leave removes a listener of a channel.
func (s *shards) leave(channel string, wake chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.channels[channel]; c != nil {
		delete(c.wakes, wake)
		if len(c.wakes) == 0 {
			s.route(channel)
		}
	}
}

// reaches reports whether messages by SPUBLISH reach a subscription to channel.
func (s *shards) reaches(channel string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.channels[channel]; c != nil {
		return c.confirmed
	}
	return s.known
}

// close ends all subscriptions and waits for the goroutines.
func (s *shards) close() {
	s.mu.Lock()
	s.stop()
	var hubs []*Hub
	for _, m := range s.masters {
		hubs = append(hubs, m.hub)
	}
	for _, c := range s.channels {
		c.settle()
	}
	s.mu.Unlock()
	for _, h := range hubs {
		_ = h.Close() // its error does not matter
	}
	s.wg.Wait()
}

// settle ends the wait of Subscribe for c. The mutex of shards is held.
func (c *shardChannel) settle() {
	if !c.isSettled {
		c.isSettled = true
		close(c.settled)
	}
}

func (c *shardChannel) wakeAll() {
	for wake := range c.wakes {
		select {
		case wake <- struct{}{}:
		default: // its listener has not received the previous one yet
		}
	}
}

// confirmed implements observer.
func (s *shards) confirmed(h *Hub, channel string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.at(h, channel)
	if c == nil {
		return
	}
	c.confirmed, c.since, s.known = true, time.Now(), true
	c.settle()
	c.wakeAll()
}

// woken implements observer.
func (s *shards) woken(h *Hub, channel string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.at(h, channel); c != nil {
		c.wakeAll()
	}
}

// lost implements observer.
func (s *shards) lost(h *Hub, channel string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.at(h, channel); c != nil {
		s.retry(channel, c, err)
	}
}

// at returns the channel of that name if it was added to h, or nil. The mutex is held.
func (s *shards) at(h *Hub, channel string) *shardChannel {
	c := s.channels[channel]
	if c == nil || c.master == "" || s.masters[c.master] == nil || s.masters[c.master].hub != h {
		return nil
	}
	return c
}

// retry plans to add c again, after err. The mutex is held.
func (s *shards) retry(channel string, c *shardChannel, err error) {
	now := time.Now()
	if c.confirmed && now.Sub(c.since) > reopenMax {
		c.delay = reopenMin
	}
	c.master, c.confirmed, c.fresh = "", false, now
	c.due = now.Add(c.delay)
	c.delay = min(2*c.delay, reopenMax)
	if !driver.Transient(err) {
		c.due = now.Add(refusedFor)
		c.settle()
		if lacksCommand(err) {
			s.known, s.lacking = false, c.due
		}
	}
	s.route(channel)
}

// lacksCommand reports whether a refusal concerns all channels: the server does not know
// SSUBSCRIBE, or the ACL forbids the command, and not the channel.
func lacksCommand(refusal error) bool { return !strings.Contains(refusal.Error(), "channel") }

// route makes run take the next step for channel. The mutex is held.
func (s *shards) route(channel string) {
	if s.ctx.Err() != nil {
		return
	}
	s.todo[channel] = struct{}{}
	if !s.routing {
		s.routing = true
		s.wg.Go(s.run)
	}
	select {
	case s.kick <- struct{}{}:
	default: // run has yet to receive the previous one
	}
}

// run takes the steps of channels until none are left and all connections are closed.
func (s *shards) run() {
	recheck := time.Now().Add(recheckEvery)
	for {
		if !time.Now().Before(recheck) {
			s.recheck()
			s.closeIdle()
			recheck = time.Now().Add(recheckEvery)
		}
		next := recheck
		for _, channel := range s.names(s.listTodo) {
			if due := s.step(channel); !due.IsZero() && due.Before(next) {
				next = due
			}
		}
		s.mu.Lock()
		if s.ctx.Err() != nil || len(s.channels) == 0 && len(s.masters) == 0 {
			s.routing = false
			s.mu.Unlock()
			return
		}
		s.mu.Unlock()
		timer := time.NewTimer(time.Until(next))
		select {
		case <-s.kick:
		case <-timer.C:
		case <-s.ctx.Done():
		}
		timer.Stop()
	}
}

// names returns what list yields under the mutex.
func (s *shards) names(list func(yield func(channel string))) (names []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list(func(channel string) { names = append(names, channel) })
	return names
}

func (s *shards) listTodo(yield func(string)) {
	for channel := range s.todo {
		yield(channel)
	}
}

func (s *shards) listAdded(yield func(string)) {
	for channel, c := range s.channels {
		if c.master != "" {
			yield(channel)
		}
	}
}

// step adds a channel to the hub of its master, or removes one without listeners. If it is too
// early for that, it returns when to do so.
func (s *shards) step(channel string) (due time.Time) {
	s.mu.Lock()
	c := s.channels[channel]
	switch {
	case c == nil:
		delete(s.todo, channel)
		s.mu.Unlock()
		return time.Time{}
	case len(c.wakes) == 0:
		delete(s.channels, channel)
		delete(s.todo, channel)
		m := s.masters[c.master]
		s.mu.Unlock()
		if m != nil {
			m.hub.remove(channel)
		}
		return time.Time{}
	case c.master != "":
		delete(s.todo, channel)
		s.mu.Unlock()
		return time.Time{}
	}
	if due = c.due; due.Before(s.paused) {
		due = s.paused
	}
	if time.Now().Before(due) {
		s.mu.Unlock()
		return due
	}
	fresh := c.fresh
	s.mu.Unlock()

	name, err := s.masterOf(channel, fresh)
	s.mu.Lock()
	if err != nil {
		defer s.mu.Unlock()
		s.retry(channel, c, err)
		s.paused = c.due // the others would wait for the same
		return c.due
	}
	if len(c.wakes) > 0 {
		delete(s.todo, channel)
	}
	m := s.masters[name]
	if m == nil {
		m = &master{hub: newHub(func(ctx context.Context) (Feed, error) { return s.open(ctx, name) }, s)}
		s.masters[name] = m
	}
	c.master, m.idle = name, time.Time{}
	closed := s.ctx.Err() != nil
	s.mu.Unlock()
	if closed {
		_ = m.hub.Close() // close may not have seen it
	} else {
		m.hub.add(channel)
	}
	return time.Time{}
}

// masterOf asks the adapter for the master of channel.
func (s *shards) masterOf(channel string, fresh time.Time) (string, error) {
	ctx, cancel := context.WithTimeout(s.ctx, openTimeout)
	defer cancel()
	return s.cfg.Master(ctx, channel, fresh)
}

// open opens a connection to the master called name, for one of its channels.
func (s *shards) open(ctx context.Context, name string) (Feed, error) {
	s.mu.Lock()
	var one string
	for channel, c := range s.channels {
		if c.master == name {
			one = channel
			break
		}
	}
	s.mu.Unlock()
	if one == "" {
		return nil, errSlotMoved // all its channels were removed meanwhile
	}
	return s.cfg.Open(ctx, name, one)
}

// recheck removes channels from masters that no longer have their slots.
func (s *shards) recheck() {
	for _, channel := range s.names(s.listAdded) {
		name, err := s.masterOf(channel, time.Time{})
		if err != nil {
			return // the others would wait for the same
		}
		s.mu.Lock()
		c := s.channels[channel]
		before := s.masters[c.master]
		moved := before != nil && c.master != name
		s.mu.Unlock()
		if !moved {
			continue
		}
		before.hub.remove(channel)
		s.mu.Lock()
		if s.at(before.hub, channel) != nil {
			c.master, c.confirmed, c.due = "", false, time.Time{}
			s.route(channel)
		}
		s.mu.Unlock()
	}
}

// closeIdle closes the connections that have had no channel for a while.
func (s *shards) closeIdle() {
	s.mu.Lock()
	defer s.mu.Unlock()
	used := map[string]bool{}
	for _, c := range s.channels {
		used[c.master] = true
	}
	now := time.Now()
	for name, m := range s.masters {
		switch {
		case used[name]:
			m.idle = time.Time{}
		case m.idle.IsZero():
			m.idle = now
		case now.Sub(m.idle) >= idleTimeout:
			delete(s.masters, name)
			s.wg.Go(func() { _ = m.hub.Close() }) // nobody uses it
		}
	}
}
