package rueidis

import (
	"cmp"
	"context"
	"errors"
	"sync"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/locker/driver/adapter"
)

// feed is one dedicated connection in subscriber state. Only run sends on it, so that nobody else
// waits for the server.
type feed struct {
	client rueidis.Client
	ctx    context.Context // ends at Close
	stop   context.CancelFunc
	events chan adapter.Event
	gone   <-chan error // from the client: the connection is
	failed chan error   // from run: a command did

	mu      sync.Mutex
	orders  []order // not yet sent
	ordered chan struct{}
}

// order is a command, and what reports its answer.
type order struct {
	cmd    rueidis.Completed
	answer adapter.Event
}

// open implements what adapter.NewHub wants.
func (d *rueidisDriver) open(ctx context.Context) (adapter.Feed, error) {
	f := &feed{client: d.client, events: make(chan adapter.Event), failed: make(chan error, 1), ordered: make(chan struct{}, 1)}
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
// RESP2 the pool would not notice that the half with the subscriptions is broken.
func (f *feed) run(connected chan<- error) {
	conn, _ := f.client.Dedicate() // dials, however long it takes; a cluster client waits for the first command
	defer conn.Close()
	f.gone = conn.SetPubSubHooks(rueidis.PubSubHooks{
		OnMessage: func(m rueidis.PubSubMessage) { f.tell(adapter.Event{Kind: adapter.Message, Channel: m.Channel}) },
		OnSubscription: func(s rueidis.PubSubSubscription) {
			if s.Kind == "subscribe" {
				f.tell(adapter.Event{Kind: adapter.Subscribed, Channel: s.Channel})
			}
		},
	})
	err := conn.Do(f.ctx, conn.B().Arbitrary("PING").Build()).NonRedisError()
	select {
	case err = <-f.gone: // RESP2 has a second connection for subscriptions, of which the ping knows nothing
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
				answer.Err = serverError(refusal.Error(), refusal)
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

func (f *feed) order(cmd rueidis.Completed, answer adapter.EventKind, channel string) error {
	f.mu.Lock()
	f.orders = append(f.orders, order{cmd, adapter.Event{Kind: answer, Channel: channel}})
	f.mu.Unlock()
	select {
	case f.ordered <- struct{}{}:
	default: // run has yet to look
	}
	return nil
}

// Subscribe implements adapter.Feed.
func (f *feed) Subscribe(channel string) error {
	return f.order(f.client.B().Subscribe().Channel(channel).Build(), adapter.Subscribed, channel)
}

// Unsubscribe implements adapter.Feed.
func (f *feed) Unsubscribe(channel string) error {
	return f.order(f.client.B().Unsubscribe().Channel(channel).Build(), adapter.Unsubscribed, channel)
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
	if end := f.ctx.Err(); end != nil { // the client's own words for that are many
		return adapter.Event{}, end
	}
	return adapter.Event{}, subscriberError(err)
}

// Close implements adapter.Feed. run gives the connection back behind.
func (f *feed) Close() error {
	f.stop()
	return nil
}

// subscriberError gives an error reply its type, and an error to a connection that went without.
func subscriberError(err error) error {
	if reply, ok := rueidis.IsRedisErr(err); ok {
		return serverError(reply.Error(), reply)
	}
	return cmp.Or(err, errGone)
}

var errGone = errors.New("rueidis: the subscriber connection is gone")
