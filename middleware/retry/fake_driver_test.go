package retry_test

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/locker/driver"
)

type subscription struct {
	s       *server
	channel string
	wake    chan struct{}
}

func (sub *subscription) Wake() <-chan struct{} { return sub.wake }

func (sub *subscription) Close() error {
	sub.s.mu.Lock()
	defer sub.s.mu.Unlock()
	delete(sub.s.subs, sub)
	return errors.New("a Close that fails changes nothing")
}

// Subscribe implements driver.Driver. Like a Hub's, a new subscription has a wake-up in it.
func (s *server) Subscribe(ctx context.Context, channel string) (driver.Subscription, error) {
	s.mu.Lock()
	n := len(s.asked)
	s.asked = append(s.asked, time.Since(s.start))
	s.mu.Unlock()
	if s.ask != nil {
		if err := s.ask(ctx, n); err != nil {
			return nil, err
		}
	}
	sub := &subscription{s, channel, make(chan struct{}, 1)}
	sub.wake <- struct{}{}
	s.mu.Lock()
	s.subs[sub] = true
	s.mu.Unlock()
	return sub, nil
}

func (*server) Info() driver.Info { return driver.Info{} }
