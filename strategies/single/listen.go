package single

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/locker/driver"
)

// listenTo makes waiters hear a second channel: prefix + the lock's key.
func listenTo(prefix string) func(drv driver.Driver, key, channel string) driver.Channel {
	return func(drv driver.Driver, key, channel string) driver.Channel {
		return driver.NewChannel(listener{drv, prefix + key}, channel)
	}
}

// listener is a driver whose subscriptions hear a second channel.
type listener struct {
	driver.Driver

	second string
}

// Subscribe subscribes to channel, and in the background to the second one. With sharded channels it
// leaves that out: drv would subscribe to it by SSUBSCRIBE, and the messages are sent by PUBLISH, or are
// events that only the node of the key announces.
func (l listener) Subscribe(ctx context.Context, channel string) (driver.Subscription, error) {
	first, err := l.Driver.Subscribe(ctx, channel)
	if err != nil || l.Delivery(channel) == driver.DeliverySharded {
		return first, err
	}
	listening, stop := context.WithCancel(l.UntilClose())
	k := &doubleSubscription{l, first, make(chan struct{}, 1), stop}
	go k.forward(listening)
	return k, nil
}

// doubleSubscription wakes after the messages of two channels.
type doubleSubscription struct {
	listener

	first driver.Subscription
	wake  chan struct{}
	stop  context.CancelFunc
}

// forward passes wake-ups on until ctx ends.
func (k *doubleSubscription) forward(ctx context.Context) {
	made := make(chan driver.Subscription, 1)
	go k.subscribe(ctx, made)
	var sub driver.Subscription
	var second <-chan struct{}
	for pending := made; ; {
		select {
		case <-k.first.Wake():
		case sub = <-pending:
			pending = nil
			if sub == nil {
				continue
			}
			second = sub.Wake()
		case <-second:
		case <-ctx.Done():
			if sub == nil {
				sub = <-made
			}
			if sub != nil {
				_ = sub.Close() // nobody uses it any more
			}
			return
		}
		select {
		case k.wake <- struct{}{}:
		default: // a wake-up waits already
		}
	}
}

const (
	subscribeTimeout = 5 * time.Second // bounds one Subscribe
	subscribePause   = time.Second     // between two
)

// subscribe subscribes to the second channel, and sends the subscription to made. It tries again until the
// server refuses the channel for good or ctx ends. At the end it closes made.
func (k *doubleSubscription) subscribe(ctx context.Context, made chan<- driver.Subscription) {
	defer close(made)
	for {
		bounded, cancel := context.WithTimeout(ctx, subscribeTimeout)
		sub, err := k.Driver.Subscribe(bounded, k.second)
		cancel()
		if err == nil {
			made <- sub
			return
		}
		if !driver.Transient(err) {
			return
		}
		select {
		case <-time.After(subscribePause):
		case <-ctx.Done():
			return
		}
	}
}

// Wake implements driver.Subscription.
func (k *doubleSubscription) Wake() <-chan struct{} { return k.wake }

// Close implements driver.Subscription.
func (k *doubleSubscription) Close() error {
	k.stop()
	return k.first.Close()
}
