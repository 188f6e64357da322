package adapter

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/locker/driver"
)

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
func (s *shards) subscribe(ctx context.Context, plain *Hub, channel string,
	wake chan struct{}) (driver.Subscription, error) {
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

// listen adds a listener to a channel. It closes the returned Go channel once SSUBSCRIBE has
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
