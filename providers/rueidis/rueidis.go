package rueidis

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/driver/adapter"
)

type rueidisDriver struct {
	adapter.Driver
	client       rueidis.Client
	cluster      bool
	single       bool        // each command goes by itself
	asks         atomic.Bool // see checksContext
	info         atomic.Pointer[info]
	closing      atomic.Bool // the last error was ErrClosing
	clientClosed *uint32     // see closedFlag
	stand        func() bool // see connections

	mu     sync.Mutex
	nodes  []*node
	closed bool
}

var _ driver.Driver = (*rueidisDriver)(nil)

// New makes a driver over client. The client stays the caller's: Close does not close it, and it
// must live longer than the driver.
//
// A nil client, also a nil pointer in the interface, and one with ClientOption.ConnLifetime is a
// [driver.InvalidError].
//
// Commands that come at the same time travel together, up to 32 in one DoMulti.
func New(client rueidis.Client) (driver.Driver, error) { return newDriver(client, false) }

// NewUnpipelined is New with each command sent by itself, by Do: for a wrapped client, or a proxy,
// that must see single commands. With many callers at once the driver is slower.
func NewUnpipelined(client rueidis.Client) (driver.Driver, error) { return newDriver(client, true) }

func newDriver(client rueidis.Client, single bool) (driver.Driver, error) {
	if v := reflect.ValueOf(client); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		return nil, &driver.InvalidError{
			What: "rueidis.New client", Got: fmt.Sprintf("nil %T", client),
			Allowed: "a client, such as rueidis.NewClient makes",
		}
	}
	if hasLifetime(client) {
		return nil, &driver.InvalidError{
			What: "rueidis.New client", Got: "made with ClientOption.ConnLifetime",
			Allowed: "one without, since a connection that expires makes rueidis send again what may have been executed",
		}
	}
	d := &rueidisDriver{client: client, cluster: client.Mode() == rueidis.ClientModeCluster, single: single,
		clientClosed: closedFlag(client), stand: connections(client)}
	d.asks.Store(checksContext(client))
	if d.cluster {
		t := adapter.NewTopology(d.newNode, d.askSlots, d.Background)
		d.Pipelines, d.Hub = t, adapter.NewHub(d.open, d.shards(t))
	} else { // both the subscriptions and the scripts are at the master
		d.Pipelines, d.Hub, d.OneServer = adapter.NewPipeline(d.newNode()), adapter.NewHub(d.open, nil), true
	}
	return d, nil
}

// info is returned by Info until stale.
type info struct {
	driver.Info
	stale time.Time
}

// Info implements driver.Driver. The servers may change; they are asked for every few seconds.
func (d *rueidisDriver) Info() driver.Info {
	now := time.Now()
	i := d.info.Load()
	if i == nil || now.After(i.stale) {
		addrs := slices.Sorted(maps.Keys(d.client.Nodes()))
		i = &info{driver.Info{Client: "rueidis", Address: strings.Join(addrs, ",")}, now.Add(5 * time.Second)}
		d.info.Store(i)
	}
	return i.Info
}

// Close implements driver.Driver.
func (d *rueidisDriver) Close() error {
	d.Pipelines.Close()
	d.mu.Lock()
	d.closed = true
	for _, n := range d.nodes {
		n.close()
	}
	d.mu.Unlock()
	return d.Driver.Close()
}
