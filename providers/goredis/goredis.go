package goredis

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/driver/adapter"
)

type goredisDriver struct {
	adapter.Base
	client        redis.UniversalClient
	obeysDeadline bool // client ends a call by its context's deadline
	servers       servers
	dials         *dials           // nil: it does not see them
	expiries      adapter.Expiries // of commands
	scripts       adapter.ScriptCache
	info          driver.Info
	hub           *adapter.Hub
}

var (
	_ driver.Driver       = (*goredisDriver)(nil)
	_ driver.Batcher      = (*goredisDriver)(nil)
	_ driver.Acknowledger = (*goredisDriver)(nil)
	_ driver.Backgrounder = (*goredisDriver)(nil)
	_ driver.Deliverer    = (*goredisDriver)(nil)
)

// New makes a driver over client, which stays the caller's: Close does not close it, and it must
// live longer than the driver. Set ContextTimeoutEnabled in its options: then most calls need no
// goroutine.
//
// A nil client, also a nil pointer in the interface, is a [driver.InvalidError].
func New(client redis.UniversalClient) (driver.Driver, error) {
	if v := reflect.ValueOf(client); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		return nil, driver.Invalid("goredis.New client", fmt.Sprintf("nil %T", client),
			"a client, such as redis.NewClient makes")
	}
	d := &goredisDriver{
		client:        client,
		obeysDeadline: obeysDeadline(client),
		servers:       newServers(client),
		dials:         newDials(client),
		info:          driver.Info{Client: "go-redis", Address: address(client)},
	}
	if cluster, ok := client.(masters); ok {
		d.hub = adapter.NewShardedHub(d.open, shards(cluster))
	} else {
		d.hub = adapter.NewHub(d.open)
	}
	return d, nil
}

func address(client redis.UniversalClient) string {
	switch c := client.(type) {
	case *redis.Client:
		if addr := c.Options().Addr; addr != "FailoverClient" { // the placeholder where Sentinels have the address
			return addr
		}
	case *redis.ClusterClient:
		return strings.Join(c.Options().Addrs, ",")
	}
	return ""
}

// Info implements driver.Driver.
func (d *goredisDriver) Info() driver.Info { return d.info }

// Close implements driver.Driver.
func (d *goredisDriver) Close() error {
	defer d.expiries.Close()
	return d.Shutdown(d.hub)
}

// SetNX implements driver.Driver.
func (d *goredisDriver) SetNX(ctx context.Context, key, value string, ttl time.Duration) (bool, error) {
	cmd := newCommand(ctx, []any{"SET", key, value, "NX", "PX", ttl.Milliseconds()})
	return call(ctx, d, key, cmd.delivery, func(sending context.Context) (bool, error) {
		reply, err := d.process(ctx, sending, cmd)
		if err != nil {
			return false, err
		}
		switch reply {
		case "OK":
			return true, nil
		case nil:
			return false, nil
		}
		return false, fmt.Errorf("goredis: SET NX was answered with %T %v: want OK or nil", reply, reply)
	})
}

// Eval implements driver.Driver.
func (d *goredisDriver) Eval(
	ctx context.Context, s *driver.Script, keys, args []string,
) (driver.Reply, error) {
	words := scriptWords(keys, args) // copied: after an early return nothing may look at the caller's slices
	return d.scripts.Eval(ctx, s, func(command, body string) (driver.Reply, error) {
		words[0], words[1] = command, body
		cmd := newCommand(ctx, words)
		return call(ctx, d, firstKey(keys), cmd.delivery, func(sending context.Context) (driver.Reply, error) {
			reply, err := d.process(ctx, sending, cmd)
			if err != nil {
				return driver.Reply{}, err
			}
			return driver.NewReply(reply)
		})
	})
}

// firstKey is the key by which a cluster finds the node; "" for none.
func firstKey(keys []string) string {
	if len(keys) == 0 {
		return ""
	}
	return keys[0]
}

// scriptWords are the words of EVAL or EVALSHA, but for the first two.
func scriptWords(keys, args []string) []any {
	words := make([]any, 3, 3+len(keys)+len(args))
	words[2] = len(keys)
	for _, k := range keys {
		words = append(words, k)
	}
	for _, a := range args {
		words = append(words, a)
	}
	return words
}

// Subscribe implements driver.Driver.
func (d *goredisDriver) Subscribe(ctx context.Context, channel string) (driver.Subscription, error) {
	if err := d.CheckOpen(); err != nil {
		return nil, err
	}
	if _, ring := d.client.(interface{ SetAddrs(map[string]string) }); ring { // a *redis.Ring, also one in another type
		return nil, errors.ErrUnsupported
	}
	return d.hub.Subscribe(ctx, channel)
}

// Delivery implements driver.Deliverer. The subscriptions of a client for one server are at the
// server that runs its scripts.
func (d *goredisDriver) Delivery(channel string) driver.Delivery {
	_, several := d.client.(masters)
	if _, single := d.client.(interface{ Options() *redis.Options }); single && !several {
		return driver.DeliveryCounted
	}
	return d.hub.Delivery(channel)
}
