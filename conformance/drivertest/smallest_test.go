package drivertest_test

import (
	"cmp"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/conformance/drivertest"
	"github.com/holdfast-go/holdfast/internal/resp"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/driver/adapter"
)

// client is a minimal client: Connect logs in, and a connection sends SET, EVALSHA and EVAL, or
// SUBSCRIBE. Both ignore contexts; replies are awaited for a while.
type client struct{ target drivertest.Target }

// Connect opens a connection.
func (c client) Connect() (*resp.Conn, error) {
	tcp, err := c.target.Dial(context.Background(), "tcp", c.target.Addrs[0])
	if err != nil || c.target.Password == "" {
		return resp.NewConn(tcp), err
	}
	conn := resp.NewConn(tcp)
	if _, err = conn.Do("AUTH", cmp.Or(c.target.Username, "default"), c.target.Password); err != nil {
		_ = conn.Close()
	}
	return conn, err
}

// timeout is how long a reply is awaited.
const timeout = 10 * time.Second

// New returns a driver over c.
func New(c client) driver.Driver {
	return &adapter.Driver{
		ClientInfo: driver.Info{Client: "smallest", Address: c.target.Addrs[0]},
		Pipelines:  adapter.NewPipeline(adapter.Client{Connections: 16, Single: true, Send: c.send}),
		Hub:        adapter.NewHub(c.open, nil),
	}
}

// send implements adapter.Client.
func (c client) send(_ context.Context, commands []*adapter.Command) {
	command := commands[0]
	conn, err := c.Connect()
	if err != nil {
		command.Answer(nil, outcome(err)) // not sent, since it did not Begin
		return
	}
	defer conn.Close()
	if command.Begin() {
		_ = conn.SetDeadline(time.Now().Add(timeout)) // it fails on a broken connection
		reply, err := conn.Do(command.Any()...)
		command.Answer(reply, outcome(err))
	}
}

// outcome returns err as package driver means it.
func outcome(err error) error {
	if text, refused := errors.AsType[resp.Error](err); refused {
		return adapter.NewServerError(string(text), err)
	}
	return err
}

// open connects a feed for the Hub.
func (c client) open(ctx context.Context) (adapter.Feed, error) {
	conn, err := adapter.Await(ctx, c.Connect)
	return feed{conn}, outcome(err)
}

// feed implements adapter.Feed.
type feed struct{ *resp.Conn }

// Subscribe implements adapter.Feed.
func (f feed) Subscribe(channel string) error { return f.Send("SUBSCRIBE", channel) }

// Unsubscribe implements adapter.Feed.
func (f feed) Unsubscribe(channel string) error { return f.Send("UNSUBSCRIBE", channel) }

// Next implements adapter.Feed.
func (f feed) Next() (adapter.Event, error) {
	for {
		v, err := f.Receive()
		if err != nil {
			return adapter.Event{}, err
		}
		if refusal, refused := v.Any().(resp.Error); refused {
			return adapter.Event{Err: outcome(refusal)}, nil
		}
		if words := v.Args(); len(words) == 3 {
			return adapter.Event{Kind: words[0], Channel: words[1]}, nil
		}
	}
}

func TestSmallest(t *testing.T) {
	t.Parallel()
	drivertest.Run(t, drivertest.Harness{
		Dial: func(_ testing.TB, target drivertest.Target) (driver.Driver, error) {
			if target.Kind != drivertest.Memory || target.TLS != nil {
				return nil, errors.ErrUnsupported
			}
			return New(client{target}), nil
		},
		On: []drivertest.Kind{drivertest.Memory},
		Lacks: []drivertest.Feature{
			drivertest.FeatureReplicas, drivertest.FeatureSharded, drivertest.FeatureCluster,
			drivertest.FeatureSentinel, drivertest.FeatureTLS, drivertest.FeatureDialError,
		},
	})
}
