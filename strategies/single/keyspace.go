package single

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/holdfast-go/holdfast/internal/argument"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/strategies/keylock"
)

// withKeyspace returns s with waiters that hear the keyspace events of the lock's key, on the channel
// prefix + key.
func withKeyspace(s keylock.Spec, prefix string) (keylock.Spec, error) {
	number, begins := strings.CutPrefix(prefix, "__keyspace@")
	number, ends := strings.CutSuffix(number, "__:")
	if _, err := strconv.ParseUint(number, 10, 32); !begins || !ends || err != nil {
		return s, argument.Invalid("single.Config.Keyspace", prefix, "__keyspace@N__: with the number of the database, or none")
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

// Subscribe subscribes to channel and to the events. If the server refuses the events for good, it
// subscribes to channel alone, as without Config.Keyspace.
func (l keyspaceListener) Subscribe(ctx context.Context, channel string) (driver.Subscription, error) {
	releases, err := l.Driver.Subscribe(ctx, channel)
	if err != nil {
		return nil, err
	}
	events, err := l.Driver.Subscribe(ctx, l.events)
	switch {
	case err == nil:
		return joinSubscriptions(releases, events), nil
	case driver.Transient(err):
		_ = releases.Close() // nobody uses it
		return nil, err
	default:
		return releases, nil
	}
}

// joined is two subscriptions as one.
type joined struct {
	first, second driver.Subscription
	wake          chan struct{}
	stop          context.CancelFunc
}

func joinSubscriptions(first, second driver.Subscription) *joined {
	ctx, stop := context.WithCancel(context.Background())
	j := &joined{first, second, make(chan struct{}, 1), stop}
	go j.forward(ctx)
	return j
}

// forward passes wake-ups on until ctx ends.
func (j *joined) forward(ctx context.Context) {
	for {
		select {
		case <-j.first.Wake():
		case <-j.second.Wake():
		case <-ctx.Done():
			return
		}
		select {
		case j.wake <- struct{}{}:
		default: // a wake-up waits already
		}
	}
}

// Wake implements driver.Subscription.
func (j *joined) Wake() <-chan struct{} { return j.wake }

// Close implements driver.Subscription.
func (j *joined) Close() error {
	j.stop()
	return errors.Join(j.first.Close(), j.second.Close())
}
