package redigo

import (
	"context"
	"fmt"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

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
	adapter.Base

	pool    Pool
	cluster cluster // pool, if it is one
	gate    *adapter.Gate
	gates   *adapter.SlotGates // of a cluster, in place of gate
	scripts adapter.ScriptCache
	closer  *deadlineCloser // apart: its timer must not keep the driver
	hub     *adapter.Hub

	// prompt is pool, if it has nothing to do for an idle connection but to hand it out. inline
	// says that a connection taken from it can be closed while in use.
	prompt *redis.Pool
	learn  sync.Once
	inline atomic.Bool
}

var (
	_ driver.Driver       = (*redigoDriver)(nil)
	_ driver.Batcher      = (*redigoDriver)(nil)
	_ driver.Acknowledger = (*redigoDriver)(nil)
	_ driver.Backgrounder = (*redigoDriver)(nil)
	_ driver.Deliverer    = (*redigoDriver)(nil)
)

// New makes a driver over pool, which stays the caller's: neither New nor the driver's Close closes
// it. New does not dial. A nil pool, and a *redis.Pool without Dial and DialContext, is a
// *driver.InvalidError.
//
// The driver is a [driver.Batcher], a [driver.Acknowledger] and a [driver.Backgrounder].
func New(pool Pool) (driver.Driver, error) {
	if v := reflect.ValueOf(pool); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		return nil, driver.Invalid("redigo.New pool", "nil", "a *redis.Pool, a *redisc.Cluster or another Pool")
	}
	d := &redigoDriver{pool: pool, gate: adapter.NewGate(places(pool)), closer: new(deadlineCloser)}
	if d.cluster, _ = pool.(cluster); d.cluster != nil {
		d.gates = adapter.NewSlotGates(partPlaces)
		d.hub = adapter.NewShardedHub(d.open, d.shards())
	} else {
		d.hub = adapter.NewHub(d.open)
	}
	if p, ok := pool.(*redis.Pool); ok {
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
	// partPlaces is how many are for each part of a cluster (see [adapter.SlotGates]).
	partPlaces = 64
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

// SetNX implements [driver.Driver].
func (d *redigoDriver) SetNX(ctx context.Context, key, value string, ttl time.Duration) (bool, error) {
	v, err := d.do(ctx, key, "SET", []any{key, value, "NX", "PX", ttl.Milliseconds()})
	return isSet(v, adapter.ConvertPending(err, isSet))
}

// isSet reads what SET NX was answered.
func isSet(v any, err error) (bool, error) {
	switch {
	case err != nil:
		return false, err
	case v == nil:
		return false, nil
	case v == "OK":
		return true, nil
	}
	return false, fmt.Errorf("redigo: SET answered %.100q: want OK or nil", v)
}

// Eval implements [driver.Driver].
func (d *redigoDriver) Eval(
	ctx context.Context, s *driver.Script, keys, args []string,
) (driver.Reply, error) {
	body := scriptArgs(keys, args)
	return d.scripts.Eval(ctx, s, func(command, script string) (driver.Reply, error) {
		body[0] = script
		v, err := d.do(ctx, firstKey(keys), command, body)
		return reply(v, adapter.ConvertPending(err, reply))
	})
}

// reply reads what a script was answered.
func reply(v any, err error) (driver.Reply, error) {
	if err != nil {
		return driver.Reply{}, err
	}
	return driver.NewReply(v)
}

// scriptArgs are the arguments of EVAL and EVALSHA, with room for the script or its digest in
// front.
func scriptArgs(keys, args []string) []any {
	body := make([]any, 2, 2+len(keys)+len(args))
	body[1] = len(keys)
	for _, list := range [...][]string{keys, args} {
		for _, s := range list {
			body = append(body, s)
		}
	}
	return body
}

// firstKey is the key by which a cluster finds the node; "" for none.
func firstKey(keys []string) string {
	if len(keys) == 0 {
		return ""
	}
	return keys[0]
}

// Subscribe implements [driver.Driver].
func (d *redigoDriver) Subscribe(ctx context.Context, channel string) (driver.Subscription, error) {
	if err := d.CheckOpen(); err != nil {
		return nil, err
	}
	return d.hub.Subscribe(ctx, channel)
}

// Delivery implements [driver.Deliverer]. The functions of a *redis.Pool dial for the subscriptions
// too, so that both are at the same server.
func (d *redigoDriver) Delivery(channel string) driver.Delivery {
	if _, single := d.pool.(*redis.Pool); single {
		return driver.DeliveryCounted
	}
	return d.hub.Delivery(channel)
}

// Info implements [driver.Driver]. A Pool does not report where it dials, so Address is empty.
func (d *redigoDriver) Info() driver.Info { return driver.Info{Client: "redigo"} }

// Close implements [driver.Driver].
func (d *redigoDriver) Close() error { return d.Shutdown(d.hub) }
