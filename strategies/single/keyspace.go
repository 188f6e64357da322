package single

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/internal/argument"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/strategies/keylock"
)

// withKeyspace returns s with waiters that hear the keyspace events of the lock's key, on the channel
// prefix + key.
func withKeyspace(s keylock.Spec, prefix string) (keylock.Spec, error) {
	number, begins := strings.CutPrefix(prefix, "__keyspace@")
	number, ends := strings.CutSuffix(number, "__:")
	n, err := strconv.ParseUint(number, 10, 31)
	if !begins || !ends || err != nil || strconv.FormatUint(n, 10) != number {
		return s, argument.Invalid("single.Config.Keyspace", prefix,
			"__keyspace@N__: with the number of the database, or none")
	}
	s.Listen = func(drv driver.Driver, key, channel string) driver.Channel {
		return driver.NewChannel(keyspaceListener{drv, prefix + key}, channel)
	}
	return s, nil
}

// keyspaceListener is a driver whose subscriptions hear a second channel: the events of a key.
type keyspaceListener struct {
	driver.Driver

	events string
}

// Subscribe subscribes to channel, and in the background to the events. With sharded channels it leaves
// the events out: in a cluster only the node of the key announces them.
func (l keyspaceListener) Subscribe(ctx context.Context, channel string) (driver.Subscription, error) {
	releases, err := l.Driver.Subscribe(ctx, channel)
	if err != nil || l.Delivery(channel) == driver.DeliverySharded {
		return releases, err
	}
	listening, stop := context.WithCancel(l.UntilClose())
	k := &keyspaceSubscription{l, releases, make(chan struct{}, 1), stop}
	go k.forward(listening)
	return k, nil
}

// keyspaceSubscription wakes after the messages of releases, and after the events of a key.
type keyspaceSubscription struct {
	keyspaceListener

	releases driver.Subscription
	wake     chan struct{}
	stop     context.CancelFunc
}

// forward passes wake-ups on until ctx ends.
func (k *keyspaceSubscription) forward(ctx context.Context) {
	made := make(chan driver.Subscription, 1)
	go k.subscribe(ctx, made)
	var sub driver.Subscription
	var events <-chan struct{}
	for pending := made; ; {
		select {
		case <-k.releases.Wake():
		case sub = <-pending:
			pending = nil
			if sub == nil {
				continue
			}
			events = sub.Wake()
		case <-events:
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

// subscribe subscribes to the events, and sends the subscription to made. It tries again until the
// server refuses the channel for good or ctx ends. At the end it closes made.
func (k *keyspaceSubscription) subscribe(ctx context.Context, made chan<- driver.Subscription) {
	defer close(made)
	for {
		bounded, cancel := context.WithTimeout(ctx, subscribeTimeout)
		sub, err := k.Driver.Subscribe(bounded, k.events)
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
func (k *keyspaceSubscription) Wake() <-chan struct{} { return k.wake }

// Close implements driver.Subscription.
func (k *keyspaceSubscription) Close() error {
	k.stop()
	return k.releases.Close()
}
