package rueidis

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/locker/driver/adapter"
)

// feed is one dedicated connection in subscriber state. Only run sends on it: nobody else waits for
// the server.
type feed struct {
	client  rueidis.Client
	sharded bool
	ctx     context.Context // ends at Close
	stop    context.CancelFunc
	events  chan adapter.Event
	gone    <-chan error // from the client: the connection is
	failed  chan error   // from run: a command did

	mu      sync.Mutex
	orders  []order // not yet sent
	ordered chan struct{}
}

// order is a command, and the event of its answer.
type order struct {
	cmd    rueidis.Completed
	answer adapter.Event
}

// open opens a feed for adapter.NewHub.
func (d *rueidisDriver) open(ctx context.Context) (adapter.Feed, error) {
	return dialFeed(ctx, d.client, false)
}

// shards lets a hub subscribe at the masters of a cluster. Their names are addresses.
func (d *rueidisDriver) shards(t *adapter.Topology) *adapter.Shards {
	return &adapter.Shards{
		Master: func(ctx context.Context, channel string, fresh time.Time) (string, error) {
			_, addr, err := t.Master(ctx, channel, fresh)
			if err == nil && addr == "" {
				err = errors.ErrUnsupported
			}
			return addr, err
		},
		Open: func(ctx context.Context, master, _ string) (adapter.Feed, error) {
			client := d.client.Nodes()[master]
			if client == nil {
				return nil, fmt.Errorf("rueidis: the client has no connection to %s", master)
			}
			return dialFeed(ctx, client, true)
		},
	}
}

// askSlots asks one node after the other until one reports slots. The end of ctx does not cut a question
// short, and Close waits for it: if it is closed while it dials, a client keeps the connection.
func (d *rueidisDriver) askSlots(ctx context.Context) (any, error) {
	for _, client := range d.client.Nodes() {
		asking, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		reply, err := adapter.Await(asking, func() (any, error) {
			cmd := client.B().Arbitrary("CLUSTER", "SLOTS").Build().ToPipe()
			return client.Do(context.WithoutCancel(ctx), cmd).ToAny()
		})
		cancel()
		if slots, _ := reply.([]any); err == nil && len(slots) > 0 {
			return slots, nil
		}
		if ctx.Err() != nil {
			break
		}
	}
	return nil, errNoTopology
}

// dialFeed makes a feed over a connection of client.
func dialFeed(ctx context.Context, client rueidis.Client, sharded bool) (adapter.Feed, error) {
	f := &feed{client: client, sharded: sharded, events: make(chan adapter.Event), failed: make(chan error, 1),
		ordered: make(chan struct{}, 1)}
	f.ctx, f.stop = context.WithCancel(context.Background())
	connected := make(chan error, 1)
	go f.run(connected)
	var err error
	select {
	case err = <-connected:
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err != nil {
		f.stop()
		return nil, subscriberError(err)
	}
	return f, nil
}

// run owns the connection, from dialing it to giving it back to the pool. It closes it first: with
// RESP2 the pool would not notice a broken half with the subscriptions.
func (f *feed) run(connected chan<- error) {
	conn, _ := f.client.Dedicate() // dials, however long it takes; a cluster client waits for the first command
	defer conn.Close()
	f.gone = conn.SetPubSubHooks(rueidis.PubSubHooks{
		OnMessage: func(m rueidis.PubSubMessage) { f.tell(adapter.Event{Kind: "message", Channel: m.Channel}) },
		OnSubscription: func(s rueidis.PubSubSubscription) {
			switch s.Kind {
			case "subscribe", "ssubscribe", "sunsubscribe":
				f.tell(adapter.Event{Kind: s.Kind, Channel: s.Channel})
			}
		},
	})
	err := conn.Do(f.ctx, conn.B().Arbitrary("PING").Build()).NonRedisError()
	select {
	case err = <-f.gone: // with RESP2 subscriptions have a second connection, unknown to the ping
	default:
	}
	if connected <- err; err != nil {
		return
	}
	for {
		select {
		case <-f.ordered:
		case <-f.ctx.Done():
			return
		}
		f.mu.Lock()
		orders := f.orders
		f.orders = nil
		f.mu.Unlock()
		cmds := make(rueidis.Commands, len(orders))
		for i, o := range orders {
			cmds[i] = o.cmd
		}
		for i, res := range conn.DoMulti(f.ctx, cmds...) {
			err := res.Error()
			if refusal, ok := rueidis.IsRedisErr(err); ok { // the connection goes on
				answer := orders[i].answer
				answer.Err = adapter.NewServerError(refusal.Error(), refusal)
				f.tell(answer)
			} else if err != nil {
				f.failed <- err
				return
			}
		}
	}
}

// tell hands an event to Next. The connection is read no further meanwhile.
func (f *feed) tell(ev adapter.Event) {
	select {
	case f.events <- ev:
	case <-f.ctx.Done():
	}
}

// order sends cmd for a channel. kind is that of its answer.
func (f *feed) order(cmd rueidis.Completed, kind, channel string) error {
	f.mu.Lock()
	f.orders = append(f.orders, order{cmd, adapter.Event{Kind: kind, Channel: channel}})
	f.mu.Unlock()
	select {
	case f.ordered <- struct{}{}:
	default: // run has yet to look
	}
	return nil
}

// Subscribe implements adapter.Feed.
func (f *feed) Subscribe(channel string) error {
	cmd := f.client.B().Subscribe().Channel(channel).Build()
	if f.sharded {
		cmd = f.client.B().Ssubscribe().Channel(channel).Build()
	}
	return f.order(cmd, "subscribe", channel)
}

// Unsubscribe implements adapter.Feed.
func (f *feed) Unsubscribe(channel string) error {
	cmd := f.client.B().Unsubscribe().Channel(channel).Build()
	if f.sharded {
		cmd = f.client.B().Sunsubscribe().Channel(channel).Build()
	}
	return f.order(cmd, "unsubscribe", channel)
}

// Next implements adapter.Feed.
func (f *feed) Next() (adapter.Event, error) {
	var err error
	select {
	case ev := <-f.events:
		return ev, nil
	case err = <-f.gone:
	case err = <-f.failed:
	case <-f.ctx.Done():
	}
	if end := f.ctx.Err(); end != nil { // the client has many errors for it
		return adapter.Event{}, end
	}
	return adapter.Event{}, subscriberError(err)
}

// Close implements adapter.Feed. run gives the connection back behind.
func (f *feed) Close() error {
	f.stop()
	return nil
}

// subscriberError gives an error reply its type, and returns errGone for no error.
func subscriberError(err error) error {
	if reply, ok := rueidis.IsRedisErr(err); ok {
		return adapter.NewServerError(reply.Error(), reply)
	}
	return cmp.Or(err, errGone)
}

var (
	errGone       = errors.New("rueidis: the subscriber connection is gone")
	errNoTopology = errors.New("rueidis: no node reported the cluster's slots")
)
