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
	client  rueidis.Client
	cluster bool
	single  bool // each command goes by itself
	asks    bool // the client asks for a context's Err before it sends
	info    atomic.Pointer[info]
	closing atomic.Bool // the last error was ErrClosing
	stop    *uint32     // not 0 once the client is closed; nil: that is not known

	mu     sync.Mutex
	nodes  []*node
	closed bool
}

var _ driver.Driver = (*rueidisDriver)(nil)

// New makes a driver over client, which stays the caller's: Close does not close it, and it must
// live longer than the driver.
//
// A nil client, also a nil pointer in the interface, and one that was made with
// ClientOption.ConnLifetime is a [driver.InvalidError].
//
// Commands of callers that come at the same time travel together, up to 32 in one DoMulti.
func New(client rueidis.Client) (driver.Driver, error) { return newDriver(client, false) }

// NewUnpipelined is New for a driver that sends each command by itself, by Do. It
// is for a wrapped client, or a proxy, that must see single commands. With many callers at once the
// driver is slower.
func NewUnpipelined(client rueidis.Client) (driver.Driver, error) { return newDriver(client, true) }

func newDriver(client rueidis.Client, single bool) (driver.Driver, error) {
	if v := reflect.ValueOf(client); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		return nil, driver.Invalid("rueidis.New client", fmt.Sprintf("nil %T", client),
			"a client, such as rueidis.NewClient makes")
	}
	if resends(client) {
		return nil, driver.Invalid("rueidis.New client", "made with ClientOption.ConnLifetime",
			"one without, since a connection that expires makes rueidis send again what may have been executed")
	}
	d := &rueidisDriver{client: client, cluster: client.Mode() == rueidis.ClientModeCluster, single: single,
		asks: asks(client)}
	if stop, lasting := stopOf(client); lasting {
		d.stop = stop
	}
	if d.cluster {
		t := adapter.NewTopology(d.newNode, d.askSlots, d.Background)
		d.Pipelines, d.Hub = t, adapter.NewShardedHub(d.open, d.shards(t))
	} else { // both the subscriptions and the scripts are at the master
		d.Pipelines, d.Hub, d.OneServer = adapter.NewPipeline(d.newNode()), adapter.NewHub(d.open), true
	}
	return d, nil
}

// resends reports whether client was made with ConnLifetime. A command in flight when its
// connection expires and the server is silent is sent again, be it marked as retryable or not
// (client.go, "err == errConnExpired"). No method shows the option; a test sees to it that these
// fields still do.
func resends(client rueidis.Client) bool {
	v := reflect.Indirect(reflect.ValueOf(client))
	if v.Kind() != reflect.Struct {
		return false
	}
	if f := v.FieldByName("hasLftm"); f.IsValid() && f.Kind() == reflect.Bool {
		return f.Bool()
	}
	f := v.FieldByName("opt")
	return f.IsValid() && f.Type() == reflect.TypeFor[*rueidis.ClientOption]() && !f.IsNil() &&
		f.Elem().FieldByName("ConnLifetime").Int() > 0
}

// asks reports whether client is of a type of rueidis itself, which asks for a context's Err right
// before it sends.
func asks(client rueidis.Client) bool {
	return reflect.Indirect(reflect.ValueOf(client)).Type().PkgPath() == reflect.TypeFor[rueidis.ClientOption]().PkgPath()
}

// info is what Info returns until stale.
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
