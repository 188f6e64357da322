package goredis

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/driver/adapter"
)

type goredisDriver struct {
	adapter.Commands
	client  redis.UniversalClient
	servers servers
	info    driver.Info
	hub     *adapter.Hub
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
//
// Commands of callers that come at the same time travel together, up to 32 in one pipeline. The hooks
// of the client see such a pipeline, with the context values of one of its callers.
func New(client redis.UniversalClient) (driver.Driver, error) { return newDriver(client, false) }

// NewUnpipelined is New for a driver that sends each command by itself, as the bare client does. It
// is for a client whose hooks or proxies must see single commands. With many callers at once the
// driver is slower.
func NewUnpipelined(client redis.UniversalClient) (driver.Driver, error) {
	return newDriver(client, true)
}

func newDriver(client redis.UniversalClient, single bool) (driver.Driver, error) {
	if v := reflect.ValueOf(client); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		return nil, driver.Invalid("goredis.New client", fmt.Sprintf("nil %T", client),
			"a client, such as redis.NewClient makes")
	}
	d := &goredisDriver{
		client: client,
		info:   driver.Info{Client: "go-redis", Address: address(client)},
	}
	d.servers = newServers(client, adapter.Client{
		Single: single, Send: d.send, Inline: inline(client), Unsent: newDials(client).explain,
	})
	d.To = d.servers.pipeline
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
	defer d.servers.close()
	return d.Shutdown(d.hub)
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
