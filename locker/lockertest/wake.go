package lockertest

import (
	"context"
	"slices"

	"github.com/holdfast-go/holdfast/locker/driver"
)

// wakeDriver is a driver of the channels of a Locker, where releases are published. It is for
// subscriptions alone.
type wakeDriver struct {
	driver.Driver // nil
	locks         *Locker
}

// channel returns the channel of name's releases.
func (l *Locker) channel(name string) driver.Channel {
	return driver.NewChannel(wakeDriver{locks: l}, name)
}

// Info implements driver.Driver.
func (wakeDriver) Info() driver.Info {
	return driver.Info{Client: source.Client, Address: address{}.String()}
}

// Subscribe implements driver.Driver.
func (d wakeDriver) Subscribe(ctx context.Context, channel string) (driver.Subscription, error) {
	l := d.locks
	if err := l.reach(ctx, attemptTimeout(0)); err != nil {
		return nil, known(err)
	}
	defer l.mu.Unlock()
	if l.channels == nil {
		l.channels = map[string][]*subscription{}
	}
	s := &subscription{l, channel, make(chan struct{}, 1)}
	l.channels[channel] = append(l.channels[channel], s)
	return s, nil
}

// subscription is one subscription to a channel.
type subscription struct {
	locks   *Locker
	channel string
	woken   chan struct{}
}

// Wake implements driver.Subscription.
func (s *subscription) Wake() <-chan struct{} { return s.woken }

// Close implements driver.Subscription.
func (s *subscription) Close() error {
	l := s.locks
	l.mu.Lock()
	defer l.mu.Unlock()
	rest := slices.DeleteFunc(l.channels[s.channel], func(other *subscription) bool { return other == s })
	if l.channels[s.channel] = rest; len(rest) == 0 {
		delete(l.channels, s.channel)
	}
	return nil
}

// publish wakes the subscribers of a channel, and reports whether there are any. The mutex is held.
func (l *Locker) publish(channel string) bool {
	for _, s := range l.channels[channel] {
		select {
		case s.woken <- struct{}{}:
		default: // it has been woken already
		}
	}
	return len(l.channels[channel]) > 0
}
