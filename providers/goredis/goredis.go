package goredis

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/driver/adapter"
)

type goredisDriver struct {
	adapter.Driver
	client redis.UniversalClient
}

var _ driver.Driver = (*goredisDriver)(nil)

// New makes a driver over client. The client stays the caller's: Close does not close it, and it
// must live longer than the driver. Set ContextTimeoutEnabled in its options: then most calls need
// no goroutine.
//
// A nil client, also a nil pointer in the interface, is a [driver.InvalidError].
//
// Commands that come at the same time travel together, up to 32 in one pipeline. The hooks of the
// client see such a pipeline, with the context values of one of its callers.
func New(client redis.UniversalClient) (driver.Driver, error) { return newDriver(client, false) }

// NewUnpipelined is New with each command sent by itself, as by the bare client: for hooks or
// proxies that must see single commands. With many callers at once the driver is slower.
func NewUnpipelined(client redis.UniversalClient) (driver.Driver, error) {
	return newDriver(client, true)
}

func newDriver(client redis.UniversalClient, single bool) (driver.Driver, error) {
	if v := reflect.ValueOf(client); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		return nil, &driver.InvalidError{
			What: "goredis.New client", Got: fmt.Sprintf("nil %T", client),
			Allowed: "a client, such as redis.NewClient makes",
		}
	}
	d := &goredisDriver{client: client}
	d.ClientInfo = driver.Info{Client: "go-redis", Address: address(client)}
	d.Pipelines = newPipelines(client, adapter.Client{
		Single: single, Waits: true, Send: d.send, Inline: inline(client), Unsent: newDials(client).explain,
	})
	if cluster, ok := client.(masters); ok {
		d.Hub = adapter.NewHub(d.open, shards(cluster))
	} else if _, ring := client.(interface{ SetAddrs(map[string]string) }); !ring { // a *redis.Ring, also one in another type
		d.Hub = adapter.NewHub(d.open, nil)
		_, d.OneServer = client.(interface{ Options() *redis.Options })
	}
	return d, nil
}

func address(client redis.UniversalClient) string {
	switch c := client.(type) {
	case *redis.Client:
		o := c.Options()
		if strings.Contains(o.Addr, ":") || o.Network == "unix" { // else Sentinels have the address
			return o.Addr
		}
	case *redis.ClusterClient:
		return strings.Join(c.Options().Addrs, ",")
	}
	return ""
}
