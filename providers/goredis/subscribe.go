package goredis

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/locker/driver"
)

// ended is a context that has ended. A PubSub that gets it still reads and writes, but cannot dial: reconnecting behind our
// back would hide that messages were lost.
var ended = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// feed is a connection in subscriber state.
type feed struct {
	pubsub *redis.PubSub

	mu     sync.Mutex
	orders []func() // not yet written, in order; while there are any, a goroutine writes them
}

// open implements what driver.NewHub wants. UNSUBSCRIBE from nothing makes the client dial now, under ctx, and in a cluster
// to any node, since messages reach them all; its answer proves the connection.
func (a *adapter) open(ctx context.Context) (driver.Feed, error) {
	pubsub := a.client.Subscribe(ctx)
	var over atomic.Bool // for the dialing, or for the one who waited for it: who comes second cleans up
	finish := func() {
		if over.Swap(true) {
			_ = pubsub.Close()
		}
	}
	_, err := driver.Await(ctx, func() (any, error) {
		defer finish()
		if err := pubsub.Unsubscribe(ctx); err != nil {
			return nil, err
		}
		return pubsub.Receive(ctx)
	})
	if err != nil {
		finish()
		return nil, classify(ctx, err, false)
	}
	return &feed{pubsub: pubsub}, nil
}

// Subscribe implements driver.Feed.
func (f *feed) Subscribe(channel string) error {
	f.order(func() { _ = f.pubsub.Subscribe(ended, channel) }) // if it fails, Next does
	return nil
}

// Unsubscribe implements driver.Feed.
func (f *feed) Unsubscribe(channel string) error {
	f.order(func() { _ = f.pubsub.Unsubscribe(ended, channel) })
	return nil
}

// order has f.pubsub do something after what was ordered before. It does not wait, since a PubSub with a broken connection
// may take its time: over TLS it dials in vain until its DialTimeout, whatever its context says.
func (f *feed) order(do func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.orders = append(f.orders, do)
	if len(f.orders) == 1 {
		go f.write()
	}
}

func (f *feed) write() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for len(f.orders) > 0 {
		do := f.orders[0]
		f.mu.Unlock()
		do()
		f.mu.Lock()
		f.orders = f.orders[1:]
	}
}

// Next implements driver.Feed.
func (f *feed) Next() (driver.Event, error) {
	for {
		got, err := f.pubsub.Receive(ended)
		if err != nil {
			return driver.Event{}, classify(context.Background(), err, true)
		}
		switch got := got.(type) {
		case *redis.Message:
			return driver.Event{Kind: driver.Message, Channel: got.Channel}, nil
		case *redis.Subscription:
			if got.Kind == "subscribe" {
				return driver.Event{Kind: driver.Subscribed, Channel: got.Channel}, nil
			}
		}
	}
}

// Close implements driver.Feed.
func (f *feed) Close() error {
	if err := f.pubsub.Close(); !errors.Is(err, redis.ErrClosed) {
		return err
	}
	return nil
}
