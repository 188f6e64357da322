package rueidis

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/locker/driver"
)

type adapter struct {
	driver.Base
	client      rueidis.Client
	hub         *driver.Hub
	info        atomic.Pointer[info]
	closing     atomic.Bool // the last error was ErrClosing
	scripts     driver.Scripts
	node        *node // the only one; of a cluster, what is not known to be at another
	topology    atomic.Pointer[topology]
	topologyDue atomic.Int64 // when to ask for it again, in Unix nanoseconds
}

var (
	_ driver.Driver       = (*adapter)(nil)
	_ driver.Batcher      = (*adapter)(nil)
	_ driver.Acknowledger = (*adapter)(nil)
	_ driver.Backgrounder = (*adapter)(nil)
)

// New makes a driver over client, which stays the caller's: Close does not close it, and it must
// live longer than the driver.
//
// A nil client, also a nil pointer in the interface, and one that was made with
// ClientOption.ConnLifetime is a [driver.InvalidError].
func New(client rueidis.Client) (driver.Driver, error) {
	if v := reflect.ValueOf(client); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		return nil, driver.Invalid("rueidis.New client", fmt.Sprintf("nil %T", client), "a client, such as rueidis.NewClient makes")
	}
	if resends(client) {
		return nil, driver.Invalid("rueidis.New client", "made with ClientOption.ConnLifetime",
			"one without, since a connection that expires makes rueidis send again what may have been executed")
	}
	a := &adapter{client: client, node: newNode(client.Mode() == rueidis.ClientModeCluster, asks(client))}
	a.hub = driver.NewHub(a.open)
	if a.node.cluster {
		a.learnTopology()
	}
	return a, nil
}

// resends tells whether client was made with ConnLifetime. A command in flight when its connection
// expires and the server is silent is sent again, be it marked as retryable or not (client.go, "err
// == errConnExpired"). No method tells of the option; a test sees to it that these fields still do.
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

// info is what Info tells until stale.
type info struct {
	driver.Info
	stale time.Time
}

// Info implements driver.Driver. The servers may change; they are asked for every few seconds.
func (a *adapter) Info() driver.Info {
	now := time.Now()
	i := a.info.Load()
	if i == nil || now.After(i.stale) {
		addrs := slices.Sorted(maps.Keys(a.client.Nodes()))
		i = &info{driver.Info{Client: "rueidis", Address: strings.Join(addrs, ",")}, now.Add(5 * time.Second)}
		a.info.Store(i)
	}
	return i.Info
}

// Close implements driver.Driver.
func (a *adapter) Close() error {
	a.node.close()
	if t := a.topology.Load(); t != nil {
		for _, n := range t.nodes {
			n.close()
		}
	}
	return a.Shutdown(a.hub)
}

// Subscribe implements driver.Driver.
func (a *adapter) Subscribe(ctx context.Context, channel string) (driver.Subscription, error) {
	if err := a.Guard(); err != nil {
		return nil, err
	}
	return a.hub.Subscribe(ctx, channel)
}
