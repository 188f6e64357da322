package redigo

import (
	"context"
	"reflect"
	"sync/atomic"

	"github.com/gomodule/redigo/redis"

	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/driver/adapter"
)

// Pool supplies connections. A *redis.Pool is one; so is a *redisc.Cluster of
// github.com/mna/redisc.
//
// Of another type the adapter uses further methods: GetContext, as of *redis.Pool; Dial()
// (redis.Conn, error), as of *redisc.Cluster, or else Subscribe answers errors.ErrUnsupported;
// EachNode and Refresh, as of *redisc.Cluster: they make it a cluster.
type Pool interface {
	// Get returns a connection for the adapter to close; one with an Err if there is none.
	Get() redis.Conn
}

type redigoDriver struct {
	adapter.Driver

	pool    Pool
	cluster cluster         // pool, if it is one
	closer  *deadlineCloser // apart: its timer must not keep the driver
	idle    *idlePool       // pool, if it hands out idle connections at once

	dials    atomic.Int32 // calls of get under way
	maxDials int32        // with so many, no flight leaves its own behind

	refreshDue atomic.Int64 // the earliest time of the next refresh, in Unix nanoseconds
}

var _ driver.Driver = (*redigoDriver)(nil)

// New makes a driver over pool. The pool stays the caller's: neither New nor the driver's Close
// closes it. New does not dial. A nil pool, and a *redis.Pool without Dial and DialContext, is a
// *driver.InvalidError.
//
// Commands that come at the same time travel together, up to 32 over one connection.
func New(pool Pool) (driver.Driver, error) { return newDriver(pool, false) }

// NewUnpipelined is New with each command sent by itself, as by the bare client: for connections
// that must see single commands. With many callers at once the driver is slower.
func NewUnpipelined(pool Pool) (driver.Driver, error) { return newDriver(pool, true) }

func newDriver(pool Pool, single bool) (driver.Driver, error) {
	if v := reflect.ValueOf(pool); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		return nil, &driver.InvalidError{
			What: "redigo.New pool", Got: "nil",
			Allowed: "a *redis.Pool, a *redisc.Cluster or another Pool",
		}
	}
	d := &redigoDriver{pool: pool, closer: new(deadlineCloser), maxDials: maxDials}
	d.ClientInfo.Client = "redigo" // a Pool does not report its address
	c := adapter.Client{Single: single, Waits: true}
	if d.cluster, _ = pool.(cluster); d.cluster != nil {
		c.Connections, c.Send = masterPlaces, d.sendToCluster
		t := adapter.NewTopology(func() adapter.Client { return c }, d.askSlots, d.Background)
		d.Pipelines, d.Hub = t, adapter.NewHub(d.open, d.shards(t))
	} else {
		c.Connections, c.Send = places(pool), d.send
		if p, ok := pool.(*redis.Pool); ok && handsOutAtOnce(p) {
			d.idle = newIdlePool(p)
			c.Inline = func(ctx context.Context) bool { return d.idle.has(ctx) && d.dials.Load() < d.maxDials }
		}
		d.Pipelines, d.Hub = adapter.NewPipeline(c), adapter.NewHub(d.open, nil)
	}
	if p, ok := pool.(*redis.Pool); ok {
		d.OneServer = true // its functions dial for the subscriptions too
		if p.MaxActive > 0 && !p.Wait && d.idle == nil {
			d.maxDials = 0 // the pool counts a dial left behind, and would refuse the next flight
		}
		if p.Dial == nil && p.DialContext == nil {
			return nil, &driver.InvalidError{
				What: "redigo.New pool", Got: "a redis.Pool without Dial and DialContext",
				Allowed: "one that has either",
			}
		}
	}
	return d, nil
}

const (
	// leastPlaces is the minimum number of concurrent calls of a pool without MaxActive. More than
	// MaxIdle of them dial for each call.
	leastPlaces = 32
	// unknownPlaces is how many are for a pool of another type.
	unknownPlaces = 1024
	// masterPlaces is how many are for each master of a cluster.
	masterPlaces = 64
	// maxDials bounds the dials that go on after their calls have left.
	maxDials = 256
)

// places is how many calls are under way at once.
func places(pool Pool) int {
	p, ok := pool.(*redis.Pool)
	switch {
	case !ok:
		return unknownPlaces
	case p.MaxActive > 0:
		return p.MaxActive
	default:
		return max(p.MaxIdle, leastPlaces)
	}
}
