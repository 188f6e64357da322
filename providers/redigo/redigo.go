package redigo

import (
	"reflect"
	"sync"
	"sync/atomic"

	"github.com/gomodule/redigo/redis"

	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/driver/adapter"
)

// Pool is where connections come from. A *redis.Pool is one; so is a *redisc.Cluster of
// github.com/mna/redisc.
//
// Of another type the adapter uses what else it has: GetContext, as *redis.Pool has it; Dial()
// (redis.Conn, error), as *redisc.Cluster has it, without which Subscribe answers
// errors.ErrUnsupported; EachNode and Refresh, as *redisc.Cluster has them, which make it a
// cluster.
type Pool interface {
	// Get returns a connection, which the adapter closes; one with an Err if there is none.
	Get() redis.Conn
}

type redigoDriver struct {
	adapter.Driver

	pool    Pool
	cluster cluster         // pool, if it is one
	closer  *deadlineCloser // apart: its timer must not keep the driver

	// prompt is pool, if it has nothing to do for an idle connection but to hand it out. inline
	// says that a connection taken from it can be closed while in use.
	prompt *redis.Pool
	learn  sync.Once
	inline atomic.Bool
}

var _ driver.Driver = (*redigoDriver)(nil)

// New makes a driver over pool, which stays the caller's: neither New nor the driver's Close closes
// it. New does not dial. A nil pool, and a *redis.Pool without Dial and DialContext, is a
// *driver.InvalidError.
//
// Commands of callers that come at the same time travel together, up to 32 over one connection.
func New(pool Pool) (driver.Driver, error) { return newDriver(pool, false) }

// NewUnpipelined is New for a driver that sends each command by itself, as the bare client does. It
// is for connections that must see single commands. With many callers at once the
// driver is slower.
func NewUnpipelined(pool Pool) (driver.Driver, error) { return newDriver(pool, true) }

func newDriver(pool Pool, single bool) (driver.Driver, error) {
	if v := reflect.ValueOf(pool); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		return nil, driver.Invalid("redigo.New pool", "nil", "a *redis.Pool, a *redisc.Cluster or another Pool")
	}
	d := &redigoDriver{pool: pool, closer: new(deadlineCloser)}
	d.ClientInfo.Client = "redigo" // a Pool does not report where it dials
	c := adapter.Client{Single: single, Waits: true}
	if d.cluster, _ = pool.(cluster); d.cluster != nil {
		c.Connections, c.Send = masterPlaces, d.sendToCluster
		t := adapter.NewTopology(func() adapter.Client { return c }, d.askSlots, d.Background)
		d.Pipelines, d.Hub = t, adapter.NewShardedHub(d.open, d.shards(t))
	} else {
		c.Connections, c.Send, c.Inline = places(pool), d.send, d.prompts
		d.Pipelines, d.Hub = adapter.NewPipeline(c), adapter.NewHub(d.open)
	}
	if p, ok := pool.(*redis.Pool); ok {
		d.OneServer = true // its functions dial for the subscriptions too
		if p.Dial == nil && p.DialContext == nil {
			return nil, driver.Invalid("redigo.New pool", "a redis.Pool without Dial and DialContext",
				"one that has either")
		}
		// Taking an idle connection of such a pool neither tests it nor dials in place of one that
		// is too old.
		if p.DialContext != nil && p.TestOnBorrow == nil && p.TestOnBorrowContext == nil && p.IdleTimeout == 0 &&
			p.MaxConnLifetime == 0 {
			d.prompt = p
		}
	}
	return d, nil
}

const (
	// leastPlaces is how many calls are under way at once, at least, where a pool has no MaxActive.
	// More than MaxIdle of them would dial for each call.
	leastPlaces = 32
	// unknownPlaces is how many are for a pool of another type.
	unknownPlaces = 1024
	// masterPlaces is how many are for each master of a cluster.
	masterPlaces = 64
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
