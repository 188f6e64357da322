package adapter

import (
	"context"
	"time"
)

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

// names collects from list under the mutex.
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
// early, it returns the time to do so.
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

// recheck removes channels from masters without their slots.
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

// closeIdle closes connections without a channel for idleTimeout.
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
