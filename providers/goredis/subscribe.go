package goredis

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/driver/adapter"
)

// ended is a context that has ended. Under it a PubSub still reads and writes, but cannot dial: to
// reconnect silently would hide a loss of messages.
var ended = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// feed is a connection in subscriber state. A PubSub keeps its mutex while it writes and while it
// dials, over TLS even if the context has ended; Await makes its Close end the other calls all the
// same.
type feed struct {
	pubsub  *redis.PubSub
	sharded bool
	ctx     context.Context // ends at Close
	stop    context.CancelFunc
}

// open opens a feed for adapter.NewHub. In a cluster the client dials any node, since messages
// reach them all.
func (d *goredisDriver) open(ctx context.Context) (adapter.Feed, error) {
	f, err := dialFeed(ctx, d.client.Subscribe(ctx))
	if err != nil {
		return nil, d.unanswered(err)
	}
	return f, nil
}

// stateAge is after how long a client is asked to reload its state while there are subscriptions.
const stateAge = 5 * time.Second

// shards lets a hub subscribe at the masters of a cluster.
func shards(cluster masters) *adapter.Shards {
	reloaded := time.Now()
	return &adapter.Shards{
		Master: func(ctx context.Context, channel string, fresh time.Time) (string, error) {
			stale := reloaded.Before(fresh) || time.Since(reloaded) > stateAge
			if c, ok := cluster.(interface{ ReloadState(ctx context.Context) }); ok && stale {
				c.ReloadState(ctx) // in the background; the next try sees the changes
				reloaded = time.Now()
			}
			client, err := cluster.MasterForKey(ctx, channel)
			if err != nil {
				return "", err
			}
			return client.Options().Addr, nil
		},
		Open: func(ctx context.Context, master, channel string) (adapter.Feed, error) {
			client, err := cluster.MasterForKey(ctx, channel)
			if err != nil {
				return nil, err
			}
			if addr := client.Options().Addr; addr != master {
				return nil, fmt.Errorf("goredis: %s has the slot of %q no longer, %s has", master, channel, addr)
			}
			f, err := dialFeed(ctx, client.Subscribe(ctx))
			if err != nil {
				return nil, err
			}
			f.sharded = true
			return f, nil
		},
	}
}

// dialFeed makes a feed of pubsub. UNSUBSCRIBE from nothing makes the client dial now, under ctx;
// its answer proves the connection. Valkey 8.0 answers with the error NOSUB.
func dialFeed(ctx context.Context, pubsub *redis.PubSub) (*feed, error) {
	var over atomic.Bool // set by the dial and by its caller: the second cleans up
	finish := func() {
		if over.Swap(true) {
			_ = pubsub.Close()
		}
	}
	_, err := adapter.Await(ctx, func() (any, error) {
		defer finish()
		if err := pubsub.Unsubscribe(ctx); err != nil {
			return nil, err
		}
		got, err := pubsub.Receive(ctx)
		if redis.HasErrorPrefix(err, "NOSUB") {
			err = nil
		}
		return got, err
	})
	if err != nil {
		finish()
		return nil, driver.NotSent(classify(ctx, err))
	}
	f := &feed{pubsub: pubsub}
	f.ctx, f.stop = context.WithCancel(context.Background())
	return f, nil
}

// Subscribe implements adapter.Feed.
func (f *feed) Subscribe(channel string) error {
	if f.sharded {
		return f.send(f.pubsub.SSubscribe, channel)
	}
	return f.send(f.pubsub.Subscribe, channel)
}

// Unsubscribe implements adapter.Feed.
func (f *feed) Unsubscribe(channel string) error {
	if f.sharded {
		return f.send(f.pubsub.SUnsubscribe, channel)
	}
	return f.send(f.pubsub.Unsubscribe, channel)
}

// send writes a command. If a PubSub has lost its connection and would dial, Next reports why.
func (f *feed) send(command func(context.Context, ...string) error, channel string) error {
	_, err := adapter.Await(f.ctx, func() (struct{}, error) {
		err := command(ended, channel)
		if errors.Is(err, ended.Err()) {
			err = nil
		}
		return struct{}{}, err
	})
	return err
}

// Next implements adapter.Feed. After an error reply a PubSub keeps the connection.
func (f *feed) Next() (adapter.Event, error) {
	for {
		got, err := adapter.Await(f.ctx, func() (any, error) { return f.pubsub.Receive(ended) })
		if end := f.ctx.Err(); end != nil && errors.Is(err, redis.ErrClosed) {
			err = end
		}
		if err != nil {
			err = classify(f.ctx, err)
			if driver.CodeOf(err) != "" {
				return adapter.Event{Err: err}, nil
			}
			return adapter.Event{}, err
		}
		switch got := got.(type) {
		case *redis.Message:
			return adapter.Event{Kind: "message", Channel: got.Channel}, nil
		case *redis.Subscription:
			return adapter.Event{Kind: got.Kind, Channel: got.Channel}, nil
		}
	}
}

// Close implements adapter.Feed.
func (f *feed) Close() error {
	f.stop()
	go func() { _ = f.pubsub.Close() }() // may have to wait for the mutex
	return nil
}
