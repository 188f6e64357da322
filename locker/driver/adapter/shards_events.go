package adapter

import (
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/locker/driver"
)

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

// at returns the named channel if it was added to h, or nil. The mutex is held.
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
	if c.confirmed && now.Sub(c.since) >= min(2*c.delay, reopenMax) {
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
